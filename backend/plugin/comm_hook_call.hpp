#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "backend/plugin/plugins.hpp"

namespace ddpsim {

// The user's code around the all-reduce of a comm hook, which a rank of `ranks` calls. What the
// code throws becomes a DeviceError; `plugins` has a comm hook of this name.

/// payload = f(bucket)
void call_before(const Plugins& plugins, const std::string& name, std::span<const float> bucket,
                 int ranks, std::span<std::byte> payload);
/// bucket = f(payload), the sum over ranks
void call_after(const Plugins& plugins, const std::string& name, std::span<const std::byte> payload,
                int ranks, std::span<float> bucket);

}  // namespace ddpsim
