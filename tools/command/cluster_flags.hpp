#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "tools/study/grid.hpp"

namespace ddpsim {

/// The flags of commands that predict: what a scenario runs on, in place of what it says itself.
struct ClusterFlags {
  std::string cluster, ranks, nodes, ranks_per_node, device;
  std::vector<std::string> links;  ///< see links_of() in link_flags.hpp

  void add_to(boost::program_options::options_description& flags);
  /// As `--set` would say it. Throws InputError for what is no number or no link, and for numbers
  /// or links that do not go together.
  std::vector<Setting> settings() const;
};

/// A value of a scenario as a setting takes it: a path relative to the folder we are in stays one,
/// wherever the scenario lies.
std::string entry_setting(const std::string& name_or_path);

/// The text of an error about a setting, in the words of the flag of `arguments` that made the
/// setting: "--cluster site.yaml: ..." of "--set cluster='/home/me/site.yaml': ...".
std::string told_of_flags(const std::vector<std::string>& arguments, std::string text);

}  // namespace ddpsim
