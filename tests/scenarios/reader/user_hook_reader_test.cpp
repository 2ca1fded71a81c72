#include "scenarios/reader/training/user_hook_reader.hpp"

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

/// A perceptron with biases: layers 0 and 2, parameters 0.weight, 0.bias, 2.weight, 2.bias. `hooks`
/// is line 5 on.
std::string with_hooks(const std::string& hooks) {
  return "workload: {model: {family: mlp, widths: [8, 16, 4]}, batch: 2}\n"
         "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
         "training:\n"
         "  hooks:\n" +
         hooks + "\n";
}

struct Small {
  Scratch scratch;
  std::string refused(const std::string& hooks) const {
    return refusal(scratch, with_hooks(hooks));
  }
  std::vector<UserHook> read(const std::string& hooks) const {
    return read_scenario(scratch.write("s.yaml", with_hooks(hooks))).training.hooks;
  }
};

using Groups = std::vector<std::vector<std::int32_t>>;

TEST_CASE("hooks name parameters or layers by pattern", "[scenarios][user_hook_reader]") {
  const Small small;
  const auto hooks = small.read(
      "    - clip: {layer: \"*\", norm: 1.5}\n"
      "    - scale: {parameter: \"*.bias\", factor: -0.5}\n"
      "    - noise: {layer: \"2\", deviation: 0.01, seed: 7}\n"
      "    - decay: {parameter: 0.weight, rate: 1e-4}\n"
      "    - record: {parameter: \"*\"}\n");
  REQUIRE(hooks.size() == 5);
  CHECK(hooks[0].kind == UserHookKind::clip);
  CHECK(hooks[0].value == 1.5);
  CHECK(hooks[0].groups == Groups{{0, 1}, {2, 3}});  // a layer's together
  CHECK(hooks[1].value == -0.5);
  CHECK(hooks[1].groups == Groups{{1}, {3}});
  CHECK(hooks[2].seed == 7);
  CHECK(hooks[2].groups == Groups{{2}, {3}});  // each by itself
  CHECK(hooks[3].value == 1e-4);
  CHECK(hooks[3].groups == Groups{{0}});
  CHECK(hooks[4].groups.size() == 4);
}

TEST_CASE("chunks find the layer's output, or are told", "[scenarios][user_hook_reader]") {
  const Small small;
  const auto hooks = small.read(
      "    - chunks: {layer: \"0\", count: 4}\n"
      "    - chunks: {layer: \"*\", count: 2, threads: 8, output: 1 MiB, time: 3 ms, "
      "transfer: 12 GB/s, host_memory: 20 GB/s}\n");
  CHECK(hooks[0].layers == std::vector<std::int32_t>{0});
  CHECK(hooks[0].outputs == std::vector<Bytes>{Bytes{2 * 16 * 4}});  // batch x width x fp32
  CHECK(hooks[0].chunks.threads == 4);
  CHECK(hooks[1].layers.size() == 2);
  CHECK(hooks[1].outputs == std::vector<Bytes>(2, MiB));
  CHECK(hooks[1].chunks.threads == 8);
  CHECK(hooks[1].chunks.time == std::chrono::milliseconds{3});
  CHECK(hooks[1].chunks.transfer.bytes_per_second == 12e9);
}

TEST_CASE("a plugin's hook brings its cost", "[scenarios][user_hook_reader]") {
  const Small small;
  const auto hooks = small.read(
      "    - plugin: {name: mine, parameter: \"*\", passes: 6, launches: 3, host: 5 us}\n");
  CHECK(hooks[0].plugin == "mine");
  CHECK(hooks[0].passes == 6);
  CHECK(hooks[0].launches == 3);
  CHECK(hooks[0].host == std::chrono::microseconds{5});
}

TEST_CASE("hooks that cannot be are refused where they stand", "[scenarios][user_hook_reader]") {
  const Small small;
  CHECK(small.refused("    - cilp: {layer: \"*\", norm: 1}") ==
        "s.yaml:5:7: training.hooks: unknown name \"cilp\"; did you mean \"clip\"?; known: clip, "
        "scale, "
        "noise, decay, record, chunks, plugin");
  CHECK(small.refused("    - scale: {parameter: 0.wieght, factor: 1}") ==
        "s.yaml:5:26: training.hooks.scale.parameter: no parameter is named \"0.wieght\"; did you "
        "mean \"0.weight\"?; known: 0.weight, 0.bias, 2.weight, 2.bias");
  CHECK(small.refused("    - scale: {layer: \"9*\", factor: 1}") ==
        "s.yaml:5:22: training.hooks.scale.layer: no layer is named \"9*\"; did you mean \"0\"?; "
        "known: 0, 2");
  CHECK(small.refused("    - scale: {factor: 1}") ==
        "s.yaml:5:14: training.hooks.scale: missing key \"parameter\" or \"layer\": it says whose "
        "gradients the hook gets");
  CHECK(small.refused("    - scale: {parameter: \"*\", layer: \"*\", factor: 1}") ==
        "s.yaml:5:38: training.hooks.scale.layer: parameter and layer exclude each other");
  CHECK(small.refused("    - scale: {parameter: \"*\"}") ==
        "s.yaml:5:14: training.hooks.scale: missing key \"factor\"");
  CHECK(small.refused("    - clip: {parameter: \"*\", norm: -1}") != "");
  CHECK(small.refused("    - clip: {parameter: \"*\", norm: 1, nrom: 1}") != "");
  CHECK(small.refused("    - scale") != "");
  CHECK(small.refused(
            "    - {scale: {parameter: \"*\", factor: 1}, clip: {layer: \"*\", norm: 1}}") != "");
  CHECK(small.refused("    - chunks: {layer: \"0\", count: 0}") != "");
  CHECK(small.refused("    - chunks: {layer: \"0\", count: 2, threads: 1000}") != "");
  CHECK(small.refused("    - plugin: {parameter: \"*\"}") != "");
  std::string many;
  for (int i = 0; i < 65; ++i) many += "    - record: {parameter: \"*\"}\n";
  CHECK(small.refused(many) != "");
}

TEST_CASE("chunks of a workload whose kernels have no shapes need to be told its output",
          "[scenarios][user_hook_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml",
                "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 3 ms\nparameters:\n"
                "  - {name: a, shape: [4], ready: 3 ms}\n");
  const auto refused = [&](const std::string& more) {
    return refusal(scratch,
                   "workload: {model: p.yaml}\ncluster: {device: h100-sxm}\n"
                   "training: {hooks: [{chunks: {layer: \"*\", count: 2" +
                       more + "}}]}\n");
  };
  CHECK(refused("").find("is not known: write it, such as output: 4 MiB") != std::string::npos);
  CHECK(refused(", output: 4 MiB") == "");
}

}  // namespace
}  // namespace ddpsim
