#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "tools/study/grid.hpp"

namespace ddpsim {

/// The flags of commands that predict: what a scenario runs on, in place of what it says itself.
struct ClusterFlags {
  std::string cluster, ranks, nodes, ranks_per_node;

  void add_to(boost::program_options::options_description& flags);
  bool any() const {
    return !cluster.empty() || !ranks.empty() || !nodes.empty() || !ranks_per_node.empty();
  }
  /// As `--set` would say it. Throws InputError for what is no number, and for numbers that do not
  /// go together.
  std::vector<Setting> settings() const;
};

/// A value of a scenario as a setting takes it: a path relative to the folder we are in stays one,
/// wherever the scenario lies.
std::string entry_setting(const std::string& name_or_path);

}  // namespace ddpsim
