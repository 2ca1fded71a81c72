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

void check_plugins(const Plugins& plugins, const Training& training) {
  for (const UserHook& hook : training.hooks)
    if (hook.kind == UserHookKind::plugin) plugins.check_gradient_hook(hook.plugin);
  if (training.comm_hook.kind == CommHookKind::plugin)
    plugins.check_comm_hook(training.comm_hook.plugin, training.comm_hook.plugin_type);
}

}  // namespace ddpsim
