#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/ranks_per_node.hpp"
#include "scenarios/reader/format/value.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

constexpr int most_nodes = 100'000, most_ranks_per_node = 1024;

/// `ranks_per_node`: a number, or a list of one for each node.
Value<RanksPerNode> ranks_of_nodes();

/// What a cluster says of its size; none: nothing.
struct ClusterSize {
  std::optional<int> nodes{};
  std::optional<RanksPerNode> ranks_per_node{};
};

/// The size of a cluster by its layers, the one that all others are based on first. Within a layer
/// `ranks` divides into nodes, and must be their product where all three are written. `nodes` or
/// `ranks_per_node` of a later layer take the place of an earlier one's `ranks`, and keep what its
/// nodes are otherwise; `ranks` of a later layer fill such nodes. Throws InputError.
ClusterSize size_of(const std::vector<Yaml>& layers);

/// What a `cluster:` says of its size, and what of it decides how `ranks` divides.
struct ClusterShape {
  std::optional<int> nodes{}, ranks_per_node{};  ///< as they are written; none: not written
  /// What a node of the ready cluster has that `system` names, where `ranks_per_node` is not
  /// written beside it.
  std::optional<int> system_ranks_per_node{};
  bool intra_node = false, inter_node = false;  ///< is there such a link?
};

struct NodesAndRanks {
  int nodes = 1, ranks_per_node = 1;
};

/// The nodes that so many ranks are, and the ranks of each. What is written divides them: `nodes`,
/// `ranks_per_node`, or what a node of the ready cluster has (fewer ranks than that are one node).
/// Where nothing is, the links say: with one between nodes alone each rank is a node, with one
/// inside a node alone, or none, all ranks are one node. Throws std::invalid_argument, with what to
/// write, where that leaves a choice or contradicts itself.
NodesAndRanks divided(int ranks, const ClusterShape& shape);

/// `nodes` beside a list of the ranks of `listed` nodes: throws InputError at its place unless the
/// number `written` there is that of the list.
void check_listed_nodes(const Yaml& nodes, std::string_view written, std::size_t listed);

}  // namespace ddpsim
