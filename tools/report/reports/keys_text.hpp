#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// Settings as lines of a scenario, those of one section below its name, each section in the order
/// of its first setting; of a key that is set twice the last value:
///
///     training:
///       strategy: fsdp
///       mp_policy: {param_dtype: bf16}
std::string keys_text(const std::vector<Setting>& settings);

}  // namespace ddpsim
