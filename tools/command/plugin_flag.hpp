#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "backend/plugin/plugins.hpp"
#include "model/parallel/training.hpp"

namespace ddpsim {

/// `--plugin LIBRARY`, as often as there are libraries.
struct PluginFlag {
  std::vector<std::string> files;

  void add_to(boost::program_options::options_description& flags);
  /// Opens them. Throws std::invalid_argument.
  Plugins open() const;
};

/// Throws std::invalid_argument if `training` asks for a hook that no plugin has, or for another
/// payload than its comm hook sends.
void check_plugins(const Plugins& plugins, const Training& training);

}  // namespace ddpsim
