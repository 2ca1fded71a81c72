#include "tools/command/plugin_flag.hpp"

namespace ddpsim {

void PluginFlag::add_to(boost::program_options::options_description& flags) {
  flags.add_options()("plugin",
                      boost::program_options::value(&files)->composing()->value_name("LIBRARY"),
                      "a shared library with hooks of your own (may be repeated); see "
                      "backend/plugin/ddpsim_plugin.h");
}

Plugins PluginFlag::open() const {
  Plugins plugins;
  for (const std::string& file : files) plugins.load(file);
  return plugins;
}

}  // namespace ddpsim
