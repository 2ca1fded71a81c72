#include "scenarios/reader/settings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/input_error.hpp"

namespace ddpsim {

std::string setting_text(const Setting& setting) {
  return fmt::format("--set {}={}", shown(setting.first), shown(setting.second));
}

bool touches(const Setting& setting, std::string_view key) {
  const std::string& given = setting.first;
  return given.starts_with(key) && (given.size() == key.size() || given[key.size()] == '.');
}

bool is_set(const std::vector<Setting>& settings, std::string_view key) {
  return std::ranges::any_of(settings,
                             [&](const Setting& setting) { return setting.first == key; });
}

bool touches(const std::vector<Setting>& settings, std::string_view key) {
  return std::ranges::any_of(settings,
                             [&](const Setting& setting) { return touches(setting, key); });
}

}  // namespace ddpsim
