#include "scenarios/reader/format/file_end.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "scenarios/reader/text/seal.hpp"

namespace ddpsim {
namespace {

/// The format that a program's file names, by its lines; empty if it is none. A profile without
/// `written_by` is a person's.
std::string written_format(const std::vector<std::string>& lines) {
  std::string format;
  bool by_program = false;
  for (const std::string& line : lines) {
    if (format.empty() && line.starts_with("format: ddpsim.")) format = line.substr(8);
    by_program = by_program || line.starts_with("written_by:");
  }
  return by_program || format.starts_with("ddpsim.calibration/") ? format : "";
}

/// In characters, as yaml-cpp counts columns.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string cut_off(std::string_view content, int failed) {
  std::vector<std::string> lines{""};
  for (const char c : content)
    if (c == '\n')
      lines.emplace_back();
    else if (c != '\r')
      lines.back() += c;
  const auto is_blank = [](const std::string& line) {
    return line.find_first_not_of(" \t") == std::string::npos;
  };
  if (failed < 0 || at(failed) >= lines.size() ||
      !std::all_of(lines.begin() + failed + 1, lines.end(), is_blank))
    return "";
  const std::string format = written_format(lines);
  const bool ended = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return is_end_line(line, format);
  });
  if (format.empty() || ended) return "";
  return fmt::format(
      "{}:{}: the file was cut off here: its last line, \"{}\", is missing; make it "
      "again",
      lines.size(), characters(lines.back()) + 1, shown("end: " + format));
}

void check_end(const YamlMap& map, const Yaml& format) {
  const std::string name = format.text("a format");
  const auto end = map.find("end");
  if (!end)
    map.node().fail(fmt::format(
        "the last line, \"end: {}\", is missing: the file was cut off, or is older than "
        "this mark; make it again",
        shown(name)));
  if (end->scalar() != name && name.starts_with(end->scalar()) && !end->is_map() && !end->is_list())
    end->fail(fmt::format("the file was cut off here: expected {}; make it again", shown(name)));
  if (end->text(name) != name) end->fail(fmt::format("expected {}", shown(name)));
}

void check_end_if_written(const YamlMap& map, const Yaml& format) {
  const auto writer = map.find("written_by");
  if (writer) {
    static_cast<void>(writer->text("the name of a program"));
    check_end(map, format);
  } else if (const auto end = map.find("end")) {
    if (end->text("a format") != format.text("a format"))
      end->fail(fmt::format("expected {}", format.text("a format")));
  }
}

}  // namespace ddpsim
