#include "tools/report/yaml_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// The length of the UTF-8 character that begins at `at`, 0 if none does: a lead byte, the
/// continuation bytes it asks for, no longer form than needed, no surrogate, nothing past U+10FFFF.
std::size_t utf8_length(const std::string& text, std::size_t at) {
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

}  // namespace

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string character = text.substr(at, std::max<std::size_t>(length, 1));
    const auto first = static_cast<unsigned char>(character[0]);
    // U+0080 to U+009F are control characters, U+2028 and U+2029 line breaks to some.
    const auto second = static_cast<unsigned char>(length > 1 ? character[1] : 0);
    if (length == 0)
      result += "\xef\xbf\xbd";
    else if (first == '"' || first == '\\')
      result.append("\\").append(character);
    else if (first < 0x20 || first == 0x7f)
      result += fmt::format("\\x{:02x}", first);
    else if (first == 0xc2 && second < 0xa0)
      result += fmt::format("\\x{:02x}", second);
    else if (character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9")
      result += character == "\xe2\x80\xa8" ? "\\u2028" : "\\u2029";
    else
      result += character;
    at += character.size();
  }
  result += '"';
  return result;
}

std::string exact(Duration time) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 4> units{
      {{1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1'000, "ns"}}};
  const std::int64_t ticks = time.count();
  for (const auto& [unit, name] : units) {
    if (ticks < unit) continue;
    std::string digits =
        fmt::format("{}", unit + ticks % unit).substr(1);  // the leading zeros stay
    digits.erase(digits.find_last_not_of('0') + 1);
    return fmt::format("{}{}{} {}", ticks / unit, digits.empty() ? "" : ".", digits, name);
  }
  return fmt::format("{} ps", ticks);
}

std::string exact(Bytes size) {
  for (const auto& [unit, name] : {std::pair{GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}})
    if (size >= unit && size.count % unit.count == 0)
      return fmt::format("{} {}", size.count / unit.count, name);
  return fmt::format("{} B", size.count);
}

}  // namespace ddpsim
