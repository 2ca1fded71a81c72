#include "scenarios/reader/cluster/cluster_shape.hpp"

#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw std::invalid_argument(problem);
}

/// `whole` in so many equal parts.
int part_of(int ranks, int parts, const char* written) {
  if (ranks % parts != 0)
    refuse(
        fmt::format("{} ranks do not divide by {} = {}: write nodes and ranks_per_node, whose "
                    "product it is, or how many each node has, such as ranks_per_node: [8, 4], and "
                    "leave ranks out",
                    ranks, written, parts));
  return ranks / parts;
}

}  // namespace

void check_listed_nodes(const Yaml& nodes, std::string_view written, std::size_t listed) {
  if (written != std::to_string(listed))
    nodes.fail(fmt::format("ranks_per_node lists {} node{}: write nodes: {}, or leave nodes out",
                           listed, listed == 1 ? "" : "s", listed));
}

NodesAndRanks divided(int ranks, const ClusterShape& shape) {
  if (shape.nodes && shape.ranks_per_node) {
    if (static_cast<std::int64_t>(*shape.nodes) * *shape.ranks_per_node != ranks)
      refuse(
          fmt::format("{} ranks are not nodes x ranks_per_node = {} x {}: leave one of the "
                      "three out",
                      ranks, *shape.nodes, *shape.ranks_per_node));
    return {*shape.nodes, *shape.ranks_per_node};
  }
  if (shape.nodes) return {*shape.nodes, part_of(ranks, *shape.nodes, "nodes")};
  if (shape.ranks_per_node)
    return {part_of(ranks, *shape.ranks_per_node, "ranks_per_node"), *shape.ranks_per_node};
  if (shape.system_ranks_per_node) {
    const int whole = *shape.system_ranks_per_node;
    if (ranks <= whole) return {1, ranks};
    return {part_of(ranks, whole, "the system's ranks_per_node"), whole};
  }
  if (ranks > 1 && shape.intra_node && shape.inter_node)
    refuse(
        fmt::format("{} ranks may be nodes of any size, as there are both intra_node and "
                    "inter_node: write nodes or ranks_per_node as well",
                    ranks));
  return shape.inter_node ? NodesAndRanks{ranks, 1} : NodesAndRanks{1, ranks};
}

}  // namespace ddpsim
