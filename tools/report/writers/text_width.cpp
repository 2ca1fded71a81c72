#include "tools/report/writers/text_width.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ddpsim {
namespace {

struct Character {
  std::size_t bytes = 1, columns = 1;
};

struct Range {
  std::uint32_t first, last;
};

// Source: Unicode 15, UnicodeData.txt (general categories Mn, Me, Cf) and EastAsianWidth.txt (W,
// F), by blocks: the few narrow characters within a block of wide ones count as wide.
constexpr std::array combining{Range{0x0300, 0x036f}, Range{0x0483, 0x0489}, Range{0x0591, 0x05bd},
                               Range{0x0610, 0x061a}, Range{0x064b, 0x065f}, Range{0x200b, 0x200f},
                               Range{0x20d0, 0x20f0}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f}};
constexpr std::array wide{
    Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},   Range{0x3041, 0xa4cf},
    Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe6f},
    Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f},
    Range{0x1f680, 0x1f6ff}, Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};

template <std::size_t Count>
bool within(const std::array<Range, Count>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return range.first <= code && code <= range.last; });
}

/// The character that begins at `at`.
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t ahead) -> std::uint32_t {
    return at + ahead < text.size() ? static_cast<unsigned char>(text[at + ahead]) : 0U;
  };
  const std::uint32_t lead = byte(0);
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  if (bytes == 1 || lead > 0xf4) return {};
  std::uint32_t code = lead & (0xffU >> (bytes + 1));
  for (std::size_t ahead = 1; ahead < bytes; ++ahead) {
    if ((byte(ahead) & 0xc0U) != 0x80) return {};
    code = (code << 6U) | (byte(ahead) & 0x3fU);
  }
  return {bytes, within(combining, code) ? 0U : within(wide, code) ? 2U : 1U};
}

/// How many bytes of `text` fit into `width` columns; at least one character.
std::size_t bytes_within(std::string_view text, std::size_t width) {
  std::size_t at = 0, columns = 0;
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (at > 0 && columns + next.columns > width) break;
    columns += next.columns;
    at += next.bytes;
  }
  return at;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = character_at(text, at);
    columns += next.columns;
    at += next.bytes;
  }
  return columns;
}

std::string padded(std::string_view text, std::size_t width, bool to_the_right) {
  const std::size_t taken = display_width(text);
  const std::string blanks(width > taken ? width - taken : 0, ' ');
  return to_the_right ? blanks + std::string(text) : std::string(text) + blanks;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return {std::string(text)};
  const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
  const std::string indent(std::min(blanks, width / 2), ' ');
  const std::size_t room = std::max<std::size_t>(1, width - indent.size());
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = blanks, gap = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string_view word = text.substr(at, end - at);
    if (!line.empty() && display_width(line) + gap + display_width(word) > room) {
      lines.push_back(indent + line);
      line.clear();
    }
    while (display_width(word) > room) {
      const std::size_t part = bytes_within(word, room);
      lines.push_back(indent + std::string(word.substr(0, part)));
      word.remove_prefix(part);
    }
    if (!line.empty()) line.append(gap, ' ');
    line += word;
    at = std::min(text.find_first_not_of(' ', end), text.size());
    gap = at - end;
  }
  if (!line.empty()) lines.push_back(indent + line);
  return lines;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  constexpr std::string_view dots = "...";
  if (width <= dots.size()) return std::string(text.substr(0, bytes_within(text, width)));
  return std::string(text.substr(0, bytes_within(text, width - dots.size()))) + std::string(dots);
}

}  // namespace ddpsim
