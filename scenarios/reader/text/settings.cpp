#include "scenarios/reader/text/settings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

/// A bare value of a mapping is short for one of its keys: cluster=dgx-h100 for cluster.system.
std::string_view in_short(std::string_view key) {
  for (const std::string_view inner : {".system", ".base"})
    if (key.ends_with(inner)) return key.substr(0, key.size() - inner.size());
  return key;
}

}  // namespace

std::string setting_text(const Setting& setting) {
  if (!setting.written.empty()) return setting.written;
  return fmt::format("--set {}={}", shown(setting.key), shown(setting.value));
}

bool touches(const Setting& setting, std::string_view key) {
  const std::string& given = setting.key;
  return given.starts_with(key) && (given.size() == key.size() || given[key.size()] == '.');
}

void check_agree(const std::vector<Setting>& flags, const std::vector<Setting>& set) {
  for (const Setting& flag : flags)
    for (const Setting& setting : set)
      if (in_short(flag.key) == in_short(setting.key) && flag.value != setting.value)
        throw InputError(fmt::format("{} and {} give {} two values: leave one of them out",
                                     setting_text(flag), setting_text(setting), flag.key));
}

bool is_set(const std::vector<Setting>& settings, std::string_view key) {
  return std::ranges::any_of(settings, [&](const Setting& setting) { return setting.key == key; });
}

bool touches(const std::vector<Setting>& settings, std::string_view key) {
  return std::ranges::any_of(settings,
                             [&](const Setting& setting) { return touches(setting, key); });
}

}  // namespace ddpsim
