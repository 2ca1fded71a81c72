#pragma once

#include "backend/comm_hooks/hook_data.hpp"
#include "backend/plugin/plugins.hpp"

namespace ddpsim {

/// The user's code around the all-reduce of a comm hook, as a rank of `ranks` calls it. What the
/// code throws becomes a DeviceError. `plugins` may be null. Throws std::invalid_argument if no
/// plugin has it.
HookData::Plugin plugin_comm_hook(const Plugins* plugins, const std::string& name, DType payload,
                                  int ranks);

}  // namespace ddpsim
