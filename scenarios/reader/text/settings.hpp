#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddpsim {

/// A key of a scenario, by its dotted path, and its value, given elsewhere than in the file.
struct Setting {
  std::string key, value;
  /// As its user wrote it, for errors, where that is not "--set KEY=VALUE": "--ranks-per-node 8".
  std::string written{};

  // clang 14 makes no aggregate in place (emplace_back).
  Setting(std::string of, std::string to, std::string as_written = {})
      : key(std::move(of)), value(std::move(to)), written(std::move(as_written)) {}
};

/// As errors name it, in the words of its user; a long value cut.
std::string setting_text(const Setting& setting);

/// Is it the key, or one below it?
bool touches(const Setting& setting, std::string_view key);

/// Throws InputError where a setting of `flags` and one of `set` give one key two values, such as
/// "--nodes 4" and "--set cluster.nodes=2".
void check_agree(const std::vector<Setting>& flags, const std::vector<Setting>& set);

/// Is there a setting of the key itself?
bool is_set(const std::vector<Setting>& settings, std::string_view key);
/// Is there a setting of the key, or of one below it?
bool touches(const std::vector<Setting>& settings, std::string_view key);

}  // namespace ddpsim
