// Merge keys: `<<: *base` gives a mapping the keys of another.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

/// The scenario whose `cluster:` and `training:` are these lines.
Scenario read_merged(const Scratch& scratch, const std::string& lines,
                     const std::vector<Setting>& set = {}) {
  return read_scenario(
      scratch.write("s.yaml", "workload: {model: gpt2, batch: 1, sequence: 64}\n" + lines), set);
}

TEST_CASE("a merged mapping gives the keys that are not there", "[scenarios][yaml]") {
  const Scratch scratch;
  const std::string lines =
      "cluster:\n"
      "  <<: {device: a100-80, ranks_per_node: 8, intra_node: nvlink3}\n"
      "  ranks_per_node: 4\n";
  const Scenario scenario = read_merged(scratch, lines);
  CHECK(scenario.cluster.device.name == "a100-80");
  CHECK(scenario.cluster.ranks_per_node == 4);
  CHECK(read_merged(scratch, lines, {{"cluster.ranks_per_node", "2"}}).cluster.ranks_per_node == 2);
}

TEST_CASE("of several merged mappings the first goes before", "[scenarios][yaml]") {
  const Scratch scratch;
  const Scenario scenario =
      read_merged(scratch,
                  "cluster:\n"
                  "  <<: [{device: v100, ranks_per_node: 2}, {device: a100-80, "
                  "intra_node: nvlink2}]\n");
  CHECK(scenario.cluster.device.name == "v100");
  CHECK(scenario.cluster.intra_node.bandwidth.bytes_per_second == 150e9);
}

TEST_CASE("an anchored mapping merges into another and stays as it was", "[scenarios][yaml]") {
  const Scratch scratch;
  const std::string lines =
      "cluster:\n"
      "  device: a100-80\n"
      "  ranks_per_node: 2\n"
      "  intra_node: &fast {base: nvlink3, latency: 4 us}\n"
      "  inter_node: {<<: *fast, base: ib-hdr}\n"
      "  nodes: 2\n";
  const Scenario scenario = read_merged(scratch, lines, {{"cluster.inter_node.latency", "9 us"}});
  CHECK(scenario.cluster.intra_node.latency == std::chrono::microseconds(4));
  CHECK(scenario.cluster.inter_node.latency == std::chrono::microseconds(9));
  CHECK(read_merged(scratch, lines).cluster.inter_node.latency == std::chrono::microseconds(4));
}

TEST_CASE("a mistake among merged keys is told where it stands", "[scenarios][yaml]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& lines) {
    try {
      read_merged(scratch, lines);
    } catch (const InputError& problem) {
      const std::string text = problem.what();
      return text.substr(text.find("s.yaml"));
    }
    return std::string();
  };
  CHECK_THAT(refused("cluster:\n"
                     "  <<: {device: a100-80, ranks_per_node: many}\n"),
             Catch::StartsWith("s.yaml:3:41: cluster.ranks_per_node: expected a whole number"));
  CHECK(refused("cluster:\n  <<: 5\n") ==
        "s.yaml:3:7: <<: expected a mapping whose keys are taken over, such as *base, or a list "
        "of such");
}

TEST_CASE("mappings merged into each other many times cost little", "[scenarios][hostile]") {
  const Scratch scratch;
  std::string wide = "a: &a {";
  for (int i = 0; i < 1000; ++i) wide += fmt::format("k{}: 1, ", i);
  wide += "}\nb: [";
  for (int i = 0; i < 1000; ++i) wide += "{<<: *a}, ";
  CHECK_THAT(refusal(scratch, wide + "]\n"), Catch::Contains("more than 100000 keys are merged"));
  std::string deep = "a0: &a0 {x: 1}\n";
  for (int i = 1; i < 60; ++i)
    deep +=
        fmt::format("a{}: &a{} {{<<: [*a{}, *a{}], y{}: *a{}}}\n", i, i, i - 1, i - 1, i, i - 1);
  CHECK_THAT(refusal(scratch, deep), Catch::Contains("missing key"));
  CHECK_THAT(refusal(scratch, "cluster: &c {<<: *c}\n"), Catch::Contains("missing key"));
}

}  // namespace
}  // namespace ddpsim
