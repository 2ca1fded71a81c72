#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

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

/// Puts settings into a scenario, as `--set` gives them; they mean the same in any order, since a
/// whole value goes before keys of it. Setting one key changes that key alone: a bare value on the
/// way, such as `inter_node: ib-ndr`, becomes the mapping that it is short for. `cluster: NAME`
/// becomes `cluster: {system: NAME}`, so that keys can stand beside it. `cluster.ranks` takes the
/// place of what the file says of the number of ranks: of `nodes`, and, where one kind of link is
/// all there is, of `ranks_per_node`; `cluster.nodes` or `cluster.ranks_per_node` take that of its
/// `ranks`, and a list as `cluster.ranks_per_node` that of its `nodes`.
///
/// Another ready cluster by its name keeps the scenario's `nodes`, or `ranks`, and another link
/// between nodes its `nics`, unless the entry that is named says its own; a list of the ranks of
/// each node says how many nodes there are. Throws InputError.
void apply_settings(Yaml& scenario, const std::vector<Setting>& settings);

/// A line for each key of the scenario's cluster that falls away where settings name another one,
/// and that is not of the machine itself. Throws InputError.
std::vector<std::string> left_out_by(const std::vector<Setting>& settings, const Yaml& scenario);

}  // namespace ddpsim
