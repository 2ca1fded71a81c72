#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/program_options.hpp>

#include "tools/study/grid.hpp"

namespace ddpsim {

/// The flags of commands that predict: what a scenario runs on, in place of what it says itself.
struct ClusterFlags {
  std::string cluster, ranks, nodes, ranks_per_node, device;
  std::vector<std::string> links;  ///< see links_of() in link_flags.hpp

  void add_to(boost::program_options::options_description& flags);
  /// As `--set` would say it, each written as its flag. Throws InputError for what is no number or
  /// no link, and for numbers or links that do not go together.
  std::vector<Setting> settings() const;
};

/// A value of a scenario as a setting takes it: a path relative to the folder we are in stays one,
/// wherever the scenario lies. A name of an entry of that kind stays the catalogue's.
std::string entry_setting(const std::string& name_or_path, std::string_view kind);

/// What --ranks-per-node says: one number for every node, or a number for each ("8,4"). Throws
/// InputError for anything else.
std::vector<int> ranks_of_nodes(const std::string& text);

}  // namespace ddpsim
