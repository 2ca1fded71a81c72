#include "scenarios/reader/text/seal.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <zlib.h>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

constexpr std::string_view mark = "end: ddpsim.";

/// The last line `end: ddpsim...` of a file.
struct EndLine {
  std::size_t begin = 0, end = 0;  ///< of the line, without its line break
  std::size_t key_end = 0;         ///< where `end: ddpsim.link/1` ends
  std::string_view seal;           ///< its comment from "#" on; "" if there is none
};

std::string_view trimmed(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::optional<EndLine> end_line(std::string_view content) {
  std::size_t begin = content.rfind(mark);
  while (begin != std::string_view::npos && begin > 0 && content[begin - 1] != '\n')
    begin = content.rfind(mark, begin - 1);
  if (begin == std::string_view::npos) return std::nullopt;
  EndLine found;
  found.begin = begin;
  found.end = std::min(content.find('\n', begin), content.size());
  const std::string_view line = content.substr(begin, found.end - begin);
  const std::size_t comment = std::min(line.find(" #"), line.size());
  found.key_end = begin + trimmed(line.substr(0, comment)).size();
  if (comment < line.size()) found.seal = trimmed(line.substr(comment + 1));
  return found;
}

/// "# 43 lines, crc32 5f0c92aa", of a file whose comment at `end` is left out.
std::string seal_of(std::string_view content, const EndLine& end) {
  std::string bytes{content.substr(0, end.key_end)};
  bytes += content.substr(end.end);
  std::erase(bytes, '\r');
  const auto lines = std::count(bytes.begin(), bytes.end(), '\n');
  return fmt::format("# {} lines, crc32 {}", lines, crc32_text(bytes));
}

}  // namespace

std::string crc32_text(std::string_view bytes) {
  return fmt::format("{:08x}",
                     crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string sealed(std::string text) {
  const auto end = end_line(text);
  if (!end) return text;
  return text.replace(end->key_end, end->end - end->key_end, "  " + seal_of(text, *end));
}

void check_seal(std::string_view content, const std::string& file) {
  const auto end = end_line(content);
  if (!end || end->seal.empty()) return;
  const std::string holds = seal_of(content, *end);
  if (end->seal == holds) return;
  const auto line =
      std::count(content.begin(), content.begin() + static_cast<long>(end->begin), '\n');
  throw InputError(fmt::format(
      "{}:{}:{}: this file is not as ddpsim wrote it: its last line says \"{}\", and what is here "
      "has \"{}\"; copy it or make it again, or, if you changed it on purpose, remove the comment "
      "of that line",
      file, line + 1, end->key_end - end->begin + 1, end->seal.substr(0, 60), holds));
}

bool is_end_line(std::string_view line, std::string_view format) {
  const auto end = end_line(line);
  return end && end->begin == 0 && end->end == line.size() &&
         line.substr(5, end->key_end - 5) == format;
}

std::string unsealed_note(std::string_view content, const std::string& file) {
  const auto end = end_line(content);
  const bool by_program =
      content.starts_with("written_by:") ||
      content.find("\nwritten_by:") != std::string_view::npos ||
      (end && content.substr(end->begin).starts_with("end: ddpsim.calibration"));
  if (!end || !end->seal.empty() || !by_program) return "";
  return fmt::format(
      "{} has no checksum in its last line: an earlier release wrote it, or somebody changed it; "
      "damage would not be noticed",
      file);
}

}  // namespace ddpsim
