// What `run` says of a described model: how it was described.

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// GPT-2 described in fp32, with these changes of its text, each made once.
std::string described(const Scratch& scratch,
                      const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text = content_of(std::filesystem::path(DDPSIM_TEST_DATA) / "descriptions/gpt2.yaml");
  for (const auto& [from, to] : changes) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  }
  return scratch.write("m.yaml", text).string();
}

TEST_CASE("the head of run says that a model was described with autocast and checkpoints",
          "[tools][described]") {
  const Scratch scratch;
  const auto run = [](const std::string& model, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"run", model, "--cluster", "dgx-h100"};
    words.insert(words.end(), more.begin(), more.end());
    Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  };
  const std::string plain = described(scratch, {});
  CHECK_THAT(run(plain).out, !Catch::Contains("autocast") && !Catch::Contains("checkpoints"));
  CHECK(run(plain, {"--json", "-"}).json()["described"]["compute"].is_null());
  CHECK(run(plain, {"--json", "-"}).json()["described"]["recomputed_kernels"] == 0);
  const std::string both =
      described(scratch, {{"dtype: fp32\n", "dtype: fp32\ncompute: bf16\n"},
                          {"{op: aten.addmm, ", "{op: aten.addmm, recomputed: true, "}});
  CHECK_THAT(
      run(both).out,
      Catch::Contains(
          "; most products in bf16, as under autocast; with activation checkpoints: the backward "
          "pass runs 1 distinct kernel again"));
  const Json json = run(both, {"--json", "-"}).json()["described"];
  CHECK(json["compute"] == "bf16");
  CHECK(json["recomputed_kernels"] == 1);
}

TEST_CASE("run and tune say whose code a model of the catalogue stands for", "[tools][described]") {
  const auto said = [](std::vector<std::string> words, const std::string& model) {
    words.insert(words.end(), {first_example, "--set", "workload.model=" + model, "--set",
                               "compare=[flat]", "--wide"});
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::string yours = "; if yours is another, capture it with `ddpsim describe`\n";
  for (const char* command : {"run", "tune"})
    CHECK_THAT(said({command}, "gpt2"),
               Catch::Contains("\ngpt2 is computed as by Hugging Face's code (fused attention, "
                               "unfused gelu_new, no dropout)" +
                               yours));
  CHECK_THAT(said({"run"}, "cs336-small"),
             Catch::Contains("cs336-small is computed as by the CS336 course's code (eager "
                             "attention, unfused RMSNorm, RoPE and SwiGLU)" +
                             yours));
  // Not in tables of what varies, nor where everybody's code is alike or a step was measured.
  CHECK_THAT(said({"run", "--vary", "cluster.nodes=1"}, "gpt2"), !Catch::Contains(yours));
  CHECK_THAT(said({"sweep", "--vary", "cluster.nodes=1"}, "gpt2"), !Catch::Contains(yours));
  CHECK_THAT(said({"run", "--set", "workload.times={forward: 20 ms, backward: 40 ms}"}, "gpt2"),
             !Catch::Contains(yours));
  CHECK_THAT(ddpsim({"run", shipped("seeds/cs336-xl-2xh100.yaml")}).out, !Catch::Contains(yours));
  CHECK_THAT(ddpsim({"run", shipped("examples/mlp-2ranks.yaml")}).out, !Catch::Contains(yours));
}

TEST_CASE("run --vary, sweep and tune say how a model was described too, once",
          "[tools][described]") {
  const Scratch scratch;
  const std::string both =
      described(scratch, {{"dtype: fp32\n", "dtype: fp32\ncompute: bf16\n"},
                          {"{op: aten.addmm, ", "{op: aten.addmm, recomputed: true, "}});
  const std::string plain = scratch.path("plain.yaml").string();
  std::filesystem::copy_file(std::filesystem::path(DDPSIM_TEST_DATA) / "descriptions/gpt2.yaml",
                             plain);
  const std::string modes =
      "described: most products in bf16, as under autocast; with activation checkpoints: the "
      "backward pass runs 1 distinct kernel again";
  const auto said = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--cluster", "dgx-h100", "--set", "compare=[flat]", "--wide"});
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const auto times = [](const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  for (const char* command : {"run", "sweep"}) {
    CAPTURE(command);
    CHECK(times(said({command, both, "--vary", "cluster.nodes=1,2"}), modes + "\n") == 1);
    CHECK(times(said({command, plain, "--vary", "cluster.nodes=1,2"}), "described:") == 0);
    // Where there are two models it says which.
    const std::string file = scratch.write(
        "s.yaml", "workload: {model: " + plain + "}\ncluster: dgx-h100\ncompare: [flat]\n");
    const std::string mixed = said({command, file, "--vary", "workload.model=" + plain + "," + both,
                                    "--vary", "cluster.nodes=1,2"});
    CHECK(times(mixed, "described:") == 1);
    CHECK_THAT(mixed, Catch::Contains(modes + " (at 2 of 4 points, the first workload.model="));
  }
  CHECK(times(said({"tune", both}), modes + "\n") == 1);
  CHECK(times(said({"tune", plain}), "described:") == 0);
}

}  // namespace
}  // namespace ddpsim
