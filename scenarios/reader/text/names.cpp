#include "scenarios/reader/text/names.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_letter(char c) {
  return lower(c) >= 'a' && lower(c) <= 'z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool alike(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

/// Small letters and digits, without what joins words.
std::string bare(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (c != '-' && c != '_') text += lower(c);
  return text;
}

}  // namespace

std::optional<std::size_t> position_of(std::string_view given,
                                       const std::vector<std::string>& names) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == given) return i;
    if (!found && alike(names[i], given)) found = i;
  }
  return found;
}

std::string other_spelling_of(std::string_view given, const std::vector<std::string>& names) {
  const std::string wanted = bare(given);
  std::string found;
  for (const std::string& name : names) {
    if (bare(name) != wanted) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

std::vector<std::string> family_of(std::string_view given, const std::vector<std::string>& names) {
  std::vector<std::string> members;
  if (given.empty()) return members;
  for (const std::string& name : names) {
    if (name.size() <= given.size() ||
        !alike(std::string_view(name).substr(0, given.size()), given))
      continue;
    const char next = name[given.size()];
    if (next == '-' || (is_digit(next) && is_letter(given.back()))) members.push_back(name);
  }
  return members;
}

}  // namespace ddpsim
