#include <chrono>

#include <catch2/catch.hpp>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

using Units = std::vector<std::vector<std::int32_t>>;

struct Blocks {
  Scratch scratch;

  Blocks() {
    scratch.write("p.yaml",
                  "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 8 ms\nparameters:\n"
                  "  - {name: embed.weight, shape: [64], ready: 8 ms}\n"
                  "  - {name: h.0.attn.w, shape: [64], ready: 6 ms}\n"
                  "  - {name: h.0.mlp.w, shape: [64], ready: 5 ms}\n"
                  "  - {name: h.1.attn.w, shape: [64], ready: 4 ms}\n"
                  "  - {name: h.1.mlp.w, shape: [64], ready: 3 ms}\n"
                  "  - {name: norm.weight, shape: [64], ready: 2 ms}\n"
                  "  - {name: head.weight, shape: [64], ready: 1 ms}\n");
  }
  static std::string text(const std::string& units) {
    return "workload: {model: p.yaml}\n"
           "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
           "training:\n  strategy: fsdp\n  units: " +
           units + "\n";
  }
  Units read(const std::string& units) const {
    return read_scenario(scratch.write("s.yaml", text(units))).training.units;
  }
  std::string refused(const std::string& units) const { return refusal(scratch, text(units)); }
};

}  // namespace

TEST_CASE("units are modules by name, by pattern, and several as one", "[scenarios][units]") {
  const Blocks blocks;
  CHECK(blocks.read("[h.0, h.1]") == Units{{1, 2}, {3, 4}});
  CHECK(blocks.read("[\"h.*\"]") == Units{{1, 2}, {3, 4}});
  CHECK(blocks.read("[\"h.*.attn\", \"h.*\"]") == Units{{1}, {3}, {2}, {4}});
  CHECK(blocks.read("[\"h.*\", norm+head]") == Units{{1, 2}, {3, 4}, {5, 6}});
  CHECK(blocks.read("[\"norm + head\"]") == Units{{5, 6}});
  // A call of fully_shard that finds all parameters taken makes no unit.
  CHECK(blocks.read("[h.0, \"h.*\"]") == Units{{1, 2}, {3, 4}});
}

TEST_CASE("units that no call of fully_shard makes are refused where they stand",
          "[scenarios][units]") {
  const Blocks blocks;
  const auto holds = [](const char* text) { return Catch::Matchers::Contains(text); };
  CHECK_THAT(blocks.refused("[hh.0]"), holds("s.yaml:5:11: training.units: p has no module"));
  CHECK_THAT(blocks.refused("[h.2]"), holds("has no module \"h.2\" with parameters; did you mean"));
  CHECK_THAT(blocks.refused("[\"h.\"]"), holds("has no module \"h.\""));
  CHECK_THAT(blocks.refused("[\"+\"]"), holds("has no module \"\""));
  CHECK_THAT(blocks.refused("[\"h.*\", h.1]"),
             holds("all parameters of \"h.1\" are in a unit already"));
  CHECK_THAT(blocks.refused("[h.0+h.0]"), holds("all parameters of \"h.0\" are in a unit already"));
  CHECK_THAT(blocks.refused("[]"), holds("expected at least one module"));
}

TEST_CASE("a unit may have settings of its own", "[scenarios][units]") {
  const Blocks blocks;
  const auto settings = [&](const std::string& units) {
    return read_scenario(blocks.scratch.write("s.yaml", Blocks::text(units)))
        .training.unit_settings;
  };
  CHECK(settings("[\"h.*\", {modules: norm+head}]").empty());
  const auto some = settings(
      "[embed, {modules: \"h.*\", reshard_after_forward: false},"
      " {modules: norm+head, reshard_after_forward: 2, backward_prefetch: [h.1, embed]}]");
  REQUIRE(some.size() == 4);
  CHECK(some[0] == UnitSettings{});
  CHECK(some[1].reshard_after_forward == false);
  CHECK(some[2] == some[1]);
  CHECK(some[3].reshard_after_forward == Reshard::among(2));
  CHECK(some[3].backward_prefetch == std::vector<std::int32_t>{2, 0});
  CHECK(settings("[{modules: embed, unshard_in_backward: false, forward_prefetch: [\"h.*\"]},"
                 " \"h.*\"]")[0]
            .forward_prefetch == std::vector<std::int32_t>{1, 2});
  // An empty list is none, whatever depth all units have.
  const auto none = settings("[{modules: embed, forward_prefetch: []}, \"h.*\"]");
  REQUIRE(none.size() == 3);
  CHECK(none[0].forward_prefetch == std::vector<std::int32_t>{});
  CHECK(!none[1].forward_prefetch);
  const auto holds = [](const char* text) { return Catch::Matchers::Contains(text); };
  CHECK_THAT(blocks.refused("[{reshard_after_forward: true}]"), holds("missing key \"modules\""));
  CHECK_THAT(blocks.refused("[{modules: h.0, forward_prefetch: [norm]}]"),
             holds("s.yaml:5:45: training.units.forward_prefetch: no unit is made of \"norm\""));
  CHECK_THAT(blocks.refused("[{modules: h.0, reshard_after_forward: 1}]"), holds("write false"));
  CHECK_THAT(blocks.refused("[{modules: h.0, reshard_after_forward: 3}]"),
             holds("expected a divisor of 2"));
}

TEST_CASE("many stars take no longer than a few", "[scenarios][units]") {
  const Blocks blocks;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(!blocks.refused("[\"" + std::string(100'000, '*') + "x\"]").empty());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{20});
}

}  // namespace ddpsim
