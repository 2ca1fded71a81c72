#include "model/base/printable.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// The code point of the well-formed character.
unsigned code_of(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  constexpr unsigned lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  unsigned code = byte(0) & lead_bits[character.size()];
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3fU);
  return code;
}

std::string spelled(unsigned code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

bool is_control(unsigned code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t ahead) {
    return at + ahead < text.size() ? static_cast<unsigned char>(text[at + ahead]) : 0U;
  };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80                    ? 1
                             : lead >= 0xc2 && lead <= 0xdf ? 2
                             : (lead & 0xf0) == 0xe0        ? 3
                             : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                            : 0;
  for (std::size_t ahead = 1; ahead < length; ++ahead)
    if ((byte(ahead) & 0xc0) != 0x80) return 0;
  const bool wrong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
                     (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f);
  return wrong ? 0 : length;
}

std::string cut_in_middle(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  constexpr std::string_view gap = " ... ";
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  const std::size_t half = (most - std::min(most, gap.size())) / 2;
  std::size_t begin = half, end = text.size() - half;
  while (begin > 0 && continues(begin)) --begin;
  while (end < text.size() && continues(end)) ++end;
  return text.replace(begin, end - begin, gap);
}

std::string error_line(std::string_view text) {
  constexpr std::size_t longest = 2000;  // bytes; some errors list the keys that are known
  return cut_in_middle(printable(text), longest);
}

std::string printable(std::string_view text, std::string_view kept) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (std::all_of(text.begin(), text.end(), plain)) return std::string(text);  // as most are
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
      ++at;
      continue;
    }
    const std::string_view character = text.substr(at, length);
    const unsigned code = code_of(character);
    if (is_control(code) && kept.find(character) == std::string_view::npos)
      result += spelled(code);
    else
      result += character;
    at += length;
  }
  return result;
}

}  // namespace ddpsim
