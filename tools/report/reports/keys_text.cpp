#include "tools/report/reports/keys_text.hpp"

#include <algorithm>
#include <string_view>

namespace ddpsim {
namespace {

/// What keys have before their next dot, and behind it ("" of a whole key).
struct Path {
  std::string_view first, rest;
};

Path path_of(std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {key, {}};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

std::string lines_of(const std::vector<Setting>& settings, const std::string& indent) {
  std::string text;
  std::vector<std::string_view> done;
  for (const Setting& setting : settings) {
    const std::string_view section = path_of(setting.key).first;
    if (std::ranges::find(done, section) != done.end()) continue;
    done.push_back(section);
    const Setting* whole = nullptr;
    std::vector<Setting> below;
    for (const Setting& each : settings) {
      const Path path = path_of(each.key);
      if (path.first != section) continue;
      if (path.rest.empty()) {
        whole = &each;
        below.clear();
      } else {
        below.emplace_back(std::string(path.rest), each.value);
      }
    }
    text += indent + std::string(section) + ":";
    if (below.empty())
      text += " " + whole->value + "\n";
    else
      text += "\n" + lines_of(below, indent + "  ");
  }
  return text;
}

}  // namespace

std::string keys_text(const std::vector<Setting>& settings) {
  return lines_of(settings, "");
}

}  // namespace ddpsim
