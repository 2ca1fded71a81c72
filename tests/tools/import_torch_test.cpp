// Real PyTorch: two processes train with DistributedDataParallel over Gloo, its profiler traces
// them, and what is imported must be what DistributedDataParallel says of itself.

#include <catch2/catch.hpp>

#include "tests/tools/torch_forks.hpp"

namespace ddpsim {
namespace {

const std::vector<std::string> ways{"marked", "unmarked"};

/// Trains in a folder of `scratch` for each of `ways`; false, and the test is not run, without
/// PyTorch.
bool trained(const Scratch& scratch) {
  if (torch_python().empty()) return false;
  const std::string script =
      (std::filesystem::path(DDPSIM_TEST_DATA).parent_path() / "tools/torch_trace.py").string();
  std::vector<PythonProgram> programs;
  for (const std::string& way : ways) {
    std::filesystem::create_directory(scratch.path(way));
    for (const char* rank : {"0", "1"})
      programs.push_back(
          {{script, scratch.path(way).string(), way}, {{"RANK", rank}, {"WORLD_SIZE", "2"}}});
  }
  for (const Outcome& outcome : torch_forks(scratch, programs, 2)) {
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
  }
  return true;
}

/// The buckets are those DistributedDataParallel names, whole or all but one of the three steps are
/// found (the profiler may stop before the last all-reduce's thread has said that it is done).
void check(const Json& found, const Json& said, bool sizes) {
  CHECK(found["steps"].size() >= 2);
  REQUIRE(found["buckets"].size() == said.size());
  // A layer is 257 KiB in two tensors: two reach the cap of 0.5 MiB, the first bucket's too.
  const std::vector<int> tensors{4, 4, 2};
  REQUIRE(said.size() == tensors.size());
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
  const Scratch scratch;
  if (!trained(scratch)) return;
  for (const std::string& way : ways) {
    CAPTURE(way);
    const std::filesystem::path folder = scratch.path(way);
    const Json said = Json::parse(content_of(folder / "said.json"));
    const Outcome outcome =
        ddpsim({"import", "torch-trace", "shapes.json", "-o", "p.yaml", "--json", "-"}, folder);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    check(outcome.json(), said, true);

    scratch.write(way + "/s.yaml",
                  "workload: {model: p.yaml}\n"
                  "cluster: {device: generic-cpu, ranks_per_node: 2, intra_node: ethernet-10g, "
                  "launch: sync}\n"
                  "training: {bucket_cap: 0.5 MiB}\n");
    const Json schedule = ddpsim({"schedule", "s.yaml", "--json", "-"}, folder).json();
    REQUIRE(schedule["buckets"].size() == said.size());
    for (std::size_t b = 0; b < said.size(); ++b) CHECK(schedule["buckets"][b]["bytes"] == said[b]);
    CHECK(ddpsim({"run", "s.yaml"}, folder).code == 0);
  }
}

/// In every step the last all-reduce begins a microsecond before the one before it.
Json with_last_two_swapped(Json trace) {
  std::vector<Json*> executions;
  for (Json& event : trace["traceEvents"])
    if (event["name"] == "gloo:all_reduce") executions.push_back(&event);
  std::ranges::sort(executions, {}, [](const Json* event) { return (*event)["ts"].get<double>(); });
  for (std::size_t last = 2; last < executions.size(); last += 3) {
    Json& middle = *executions[last - 1];
    const double begin = (*executions[last])["ts"].get<double>() + 1;
    const double end = middle["ts"].get<double>() + middle["dur"].get<double>();
    middle["ts"] = begin;
    middle["dur"] = std::max(1.0, end - begin);
  }
  return trace;
}

TEST_CASE("threads of PyTorch's that begin all-reduces in another order change no bucket",
          "[tools][import_torch]") {
  const Scratch scratch;
  if (!trained(scratch)) return;
  const std::filesystem::path folder = scratch.path("marked");
  const Json said = Json::parse(content_of(folder / "said.json"));
  const Json trace = Json::parse(content_of(folder / "shapes.json"));
  scratch.write("marked/swapped.json", with_last_two_swapped(trace).dump());
  const Outcome outcome =
      ddpsim({"import", "torch-trace", "swapped.json", "-o", "p.yaml", "--json", "-"}, folder);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  check(outcome.json(), said, true);
}

TEST_CASE("PyTorch's own trace without shapes takes them from the model", "[tools][import_torch]") {
  const Scratch scratch;
  if (!trained(scratch)) return;
  for (const std::string& way : ways) {
    CAPTURE(way);
    const std::filesystem::path folder = scratch.path(way);
    const Json said = Json::parse(content_of(folder / "said.json"));
    const Outcome bare = ddpsim({"import", "torch-trace", "plain.json", "--json", "-"}, folder);
    CAPTURE(bare.err);
    REQUIRE(bare.code == 0);
    check(bare.json(), said, false);
    CHECK_THAT(bare.json()["could_not_tell"].dump(), Catch::Contains("sizes of the gradients"));

    const Outcome refused = ddpsim({"import", "torch-trace", "plain.json", "-o", "p.yaml"}, folder);
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Catch::Contains("--model"));

    scratch.write(way + "/m.yaml", "family: mlp\nwidths: [256, 256, 256, 256, 256, 256]\n");
    const Outcome outcome = ddpsim({"import", "torch-trace", "plain.json", "-o", "p.yaml",
                                    "--model", "./m.yaml", "--json", "-"},
                                   folder);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    check(outcome.json(), said, true);
    CHECK_THAT(content_of(folder / "p.yaml"),
               Catch::Contains("name: \"0.weight\", shape: [256, 256]"));
  }
}

}  // namespace
}  // namespace ddpsim
