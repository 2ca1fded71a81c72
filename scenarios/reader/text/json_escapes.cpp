#include "scenarios/reader/text/json_escapes.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::size_t escape_size = 6;  // \ud83d

/// The number of the escape \uXXXX that begins at `at`, if one does.
std::optional<std::uint32_t> escape_at(const std::string& text, std::size_t at) {
  if (at + escape_size > text.size() || text[at] != '\\' || text[at + 1] != 'u')
    return std::nullopt;
  const char* const first = text.data() + at + 2;
  const char* const last = text.data() + at + escape_size;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(first, last, number, 16);
  return error == std::errc{} && end == last ? std::optional(number) : std::nullopt;
}

bool is_high(std::uint32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
bool is_low(std::uint32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

}  // namespace

std::string with_joined_surrogates(const std::string& text) {
  std::string joined;
  std::size_t copied = 0;
  for (std::size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const auto high = escape_at(text, at);
    const auto low = high && is_high(*high) ? escape_at(text, at + escape_size) : std::nullopt;
    if (!low || !is_low(*low)) {
      at += 2;  // the character behind a backslash is escaped: it begins no escape
      continue;
    }
    const std::uint32_t character = 0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00);
    joined += text.substr(copied, at - copied) + fmt::format("\\U{:08X}", character);
    copied = at += 2 * escape_size;
  }
  return joined + text.substr(copied);
}

}  // namespace ddpsim
