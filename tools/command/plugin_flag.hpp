#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "backend/plugin/plugins.hpp"

namespace ddpsim {

/// `--plugin LIBRARY`, as often as there are libraries.
struct PluginFlag {
  std::vector<std::string> files;

  void add_to(boost::program_options::options_description& flags);
  /// Opens them. Throws std::invalid_argument.
  Plugins open() const;
};

}  // namespace ddpsim
