// Real PyTorch: two processes train with DistributedDataParallel over Gloo, its profiler traces them, and
// what is imported must be what DistributedDataParallel says of itself.

#include <catch2/catch.hpp>

#include "tests/torch_oracle.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// Trains in `folder`; false, with a warning, where there is no PyTorch and none is required.
bool trained(const std::filesystem::path& folder, const std::string& marked) {
  const std::optional<std::string> python = python_with_torch();
  if (!python) {
    const char* torch = std::getenv("DDPSIM_TORCH");
    REQUIRE((torch == nullptr || std::string(torch) != "required"));
    WARN("python3-torch is not installed: not compared");
    return false;
  }
  const std::string script =
      (std::filesystem::path(DDPSIM_TEST_DATA).parent_path() / "tools/torch_trace.py").string();
  const std::vector<std::string> words{*python, script, folder.string(), marked};
  Running first(words, folder, {{"RANK", "0"}, {"WORLD_SIZE", "2"}});
  Running second(words, folder, {{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  const Outcome outcomes[] = {first.wait(), second.wait()};
  for (const Outcome& outcome : outcomes) {
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
  }
  return true;
}

/// The buckets are those DistributedDataParallel names, whole or all but one of the three steps are found
/// (the profiler may stop before the last all-reduce's thread has said that it is done).
void check(const Json& found, const Json& said, bool sizes) {
  CHECK(found["steps"].size() >= 2);
  REQUIRE(found["buckets"].size() == said.size());
  // A layer is 256 * 256 + 256 elements in two tensors. The first bucket closes at 1 MiB, with the weight
  // of the fourth layer from behind; the other holds the first layer.
  const int tensors[] = {8, 2};
  for (std::size_t b = 0; b < said.size(); ++b) {
    CHECK(found["buckets"][b]["tensors"] == tensors[b]);
    if (sizes) CHECK(found["buckets"][b]["bytes"] == said[b]);
  }
  for (const Json& step : found["steps"]) {
    const double forward = step["forward_ms"].get<double>(),
                 backward = step["backward_ms"].get<double>();
    const double optimizer = step["optimizer_ms"].get<double>(),
                 busy = step["collectives_ms"].get<double>();
    CHECK(forward > 0);
    CHECK(backward > 0);
    CHECK(optimizer > 0);
    CHECK(busy > 0);
    CHECK(forward + backward + optimizer <= step["step_ms"].get<double>());
    CHECK(step["overlapped_ms"].get<double>() <= busy);
  }
}

TEST_CASE("PyTorch's own trace with shapes has the buckets it says it has",
          "[tools][import_torch]") {
  for (const char* marked : {"marked", "unmarked"}) {
    CAPTURE(marked);
    const Scratch scratch;
    if (!trained(scratch.folder(), marked)) return;
    const Json said = Json::parse(content_of(scratch.path("said.json")));
    const Outcome outcome = ddpsim(
        {"import", "torch-trace", "shapes.json", "-o", "p.yaml", "--json", "-"}, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    check(outcome.json(), said, true);

    scratch.write("s.yaml",
                  "workload: {model: p.yaml}\n"
                  "cluster: {device: generic-cpu, ranks_per_node: 2, intra_node: ethernet-10g, "
                  "launch: sync}\n"
                  "training: {bucket_cap: 0.5 MiB}\n");
    const Json schedule = ddpsim({"schedule", "s.yaml", "--json", "-"}, scratch.folder()).json();
    REQUIRE(schedule["buckets"].size() == said.size());
    for (std::size_t b = 0; b < said.size(); ++b) CHECK(schedule["buckets"][b]["bytes"] == said[b]);
    CHECK(ddpsim({"run", "s.yaml"}, scratch.folder()).code == 0);
  }
}

TEST_CASE("PyTorch's own trace without shapes takes them from the model", "[tools][import_torch]") {
  for (const char* marked : {"marked", "unmarked"}) {
    CAPTURE(marked);
    const Scratch scratch;
    if (!trained(scratch.folder(), marked)) return;
    const Json said = Json::parse(content_of(scratch.path("said.json")));
    const Outcome bare =
        ddpsim({"import", "torch-trace", "plain.json", "--json", "-"}, scratch.folder());
    CAPTURE(bare.err);
    REQUIRE(bare.code == 0);
    check(bare.json(), said, false);
    CHECK_THAT(bare.json()["could_not_tell"].dump(), Catch::Contains("sizes of the gradients"));

    const Outcome refused =
        ddpsim({"import", "torch-trace", "plain.json", "-o", "p.yaml"}, scratch.folder());
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Catch::Contains("--model"));

    scratch.write("m.yaml", "family: mlp\nwidths: [256, 256, 256, 256, 256, 256]\n");
    const Outcome outcome = ddpsim({"import", "torch-trace", "plain.json", "-o", "p.yaml",
                                    "--model", "./m.yaml", "--json", "-"},
                                   scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    check(outcome.json(), said, true);
    CHECK_THAT(content_of(scratch.path("p.yaml")),
               Catch::Contains("name: \"0.weight\", shape: [256, 256]"));
  }
}

}  // namespace
}  // namespace ddpsim
