#include "scenarios/reader/cluster/cluster_shape.hpp"

#include <catch2/catch.hpp>

namespace ddpsim {
namespace {

TEST_CASE("ranks divide by what is written, by the system, or by the links",
          "[scenarios][cluster_shape]") {
  struct Case {
    int ranks;
    ClusterShape shape;
    int nodes, ranks_per_node;
  };
  for (const Case& each :
       {Case{16, {.nodes = 2}, 2, 8}, Case{16, {.ranks_per_node = 4}, 4, 4},
        Case{16, {.nodes = 2, .ranks_per_node = 8}, 2, 8},
        Case{4, {.system_ranks_per_node = 8}, 1, 4}, Case{24, {.system_ranks_per_node = 8}, 3, 8},
        Case{6, {.inter_node = true}, 6, 1}, Case{6, {.intra_node = true}, 1, 6}, Case{6, {}, 1, 6},
        Case{8, {.nodes = 1, .intra_node = true, .inter_node = true}, 1, 8}}) {
    CAPTURE(each.ranks, each.nodes, each.ranks_per_node);
    const NodesAndRanks parts = divided(each.ranks, each.shape);
    CHECK(parts.nodes == each.nodes);
    CHECK(parts.ranks_per_node == each.ranks_per_node);
  }
}

TEST_CASE("a number of ranks that contradicts, does not divide or leaves a choice is refused",
          "[scenarios][cluster_shape]") {
  const auto refused = [](int ranks, const ClusterShape& shape, const std::string& says) {
    CAPTURE(says);
    CHECK_THROWS_WITH(divided(ranks, shape), Catch::Contains(says));
  };
  refused(12, {.nodes = 2, .ranks_per_node = 8}, "12 ranks are not nodes x ranks_per_node = 2 x 8");
  refused(9, {.nodes = 2}, "9 ranks do not divide by nodes = 2");
  refused(9, {.ranks_per_node = 2}, "9 ranks do not divide by ranks_per_node = 2");
  refused(12, {.system_ranks_per_node = 8},
          "12 ranks do not divide by the system's ranks_per_node = 8");
  refused(16, {.intra_node = true, .inter_node = true}, "write nodes or ranks_per_node as well");
}

}  // namespace
}  // namespace ddpsim
