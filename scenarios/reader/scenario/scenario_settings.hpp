#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// Puts settings into a scenario, as `--set` gives them; they mean the same in any order, since a
/// whole value goes before keys of it. Setting one key changes that key alone: a bare value on the
/// way, such as `inter_node: ib-ndr`, becomes the mapping that it is short for. `cluster: NAME`
/// becomes `cluster: {system: NAME}`, so that keys can stand beside it. `cluster.ranks` takes the
/// place of what the file says of the number of ranks: of `nodes`, and, where one kind of link is
/// all there is, of `ranks_per_node`; `cluster.nodes` or `cluster.ranks_per_node` take that of its
/// `ranks`, and a list as `cluster.ranks_per_node` that of its `nodes`.
///
/// Another ready cluster by its name keeps the `nodes`, or `ranks`, of the scenario's cluster,
/// whether they stand in the scenario or in a file that its cluster names, and another link between
/// nodes its `nics`, unless the entry that is named says its own; a list of the ranks of each node
/// says how many nodes there are. Throws InputError.
void apply_settings(Yaml& scenario, const std::vector<Setting>& settings);

/// What the mapping of a setting says of a key below it: of `cluster={nodes: 4}` and
/// "cluster.nodes" "4", and "" where that is no plain value. None where it says nothing of the key,
/// and for a value that is no mapping, or cannot be read.
std::optional<std::string> said_within(const Setting& whole, std::string_view key);

/// Throws InputError where a mapping of `set`, such as "--set cluster={nodes: 2}", says another
/// value of a key than a setting of `flags`, such as "--nodes 4".
void check_agree_within(const std::vector<Setting>& flags, const std::vector<Setting>& set);

/// A line for each key of the scenario's cluster, or of a file that this one names, that falls away
/// where settings name another one, and that is not of the machine itself. Throws InputError.
std::vector<std::string> left_out_by(const std::vector<Setting>& settings, const Yaml& scenario);

/// "nodes" or "ranks", and their number as it is written.
struct SaidSize {
  std::string key, value;
};

/// What the scenario's cluster, or a file that this one names, says of its size, where settings
/// name another cluster that does not keep it. Throws InputError.
std::optional<SaidSize> size_left_out_by(const std::vector<Setting>& settings,
                                         const Yaml& scenario);

}  // namespace ddpsim
