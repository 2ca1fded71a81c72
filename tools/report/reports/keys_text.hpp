#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// Settings as lines of a scenario, those of one section below its name; of a key that is set twice
/// the last value. What was set of a section as a whole is said to replace it. Throws InputError
/// where a path runs through something that is no mapping.
///
///     training:
///       strategy: fsdp
///       mp_policy: {param_dtype: bf16}
std::string keys_text(const std::vector<Setting>& settings);

}  // namespace ddpsim
