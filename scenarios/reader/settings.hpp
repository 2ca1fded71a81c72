#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddpsim {

/// A key of a scenario, by its dotted path, and its value, given elsewhere than in the file: "--set
/// cluster.ranks_per_node=8".
using Setting = std::pair<std::string, std::string>;

/// As errors name it, a long value cut.
std::string setting_text(const Setting& setting);

/// Is it the key, or one below it?
bool touches(const Setting& setting, std::string_view key);

/// Is there a setting of the key itself?
bool is_set(const std::vector<Setting>& settings, std::string_view key);
/// Is there a setting of the key, or of one below it?
bool touches(const std::vector<Setting>& settings, std::string_view key);

}  // namespace ddpsim
