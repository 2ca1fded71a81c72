#include "scenarios/reader/text/yaml_syntax.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace ddpsim {
namespace {

std::vector<std::string> lines_of(const std::string& content) {
  std::vector<std::string> lines;
  std::istringstream stream(content);
  for (std::string line; std::getline(stream, line);) {
    // Without what begins a comment, which is a # after a blank.
    for (std::size_t i = 0; i < line.size(); ++i)
      if (line[i] == '#' && (i == 0 || line[i - 1] == ' ')) line.resize(i);
    line.resize(line.find_last_not_of(" \t\r") + 1);
    lines.push_back(line);
  }
  return lines;
}

int indent(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t-");
  return first == std::string::npos ? 0 : static_cast<int>(first);
}

bool has_colon(const std::string& line) {
  return line.ends_with(':') || line.find(": ") != std::string::npos;
}

/// Two of them, outside of quotes and brackets, are one too many.
bool has_two_colons(const std::string& line) {
  const std::size_t first = line.find(": ");
  return first != std::string::npos && line.find_first_of("\"'{[", first) == std::string::npos &&
         line.find(": ", first + 2) != std::string::npos;
}

/// An apostrophe within a word opens no quotes.
bool begins_value(const std::string& line, int column) {
  return column == 0 || std::string_view(" \t,[{:").find(
                            line[static_cast<std::size_t>(column - 1)]) != std::string_view::npos;
}

/// The bracket that is open where the reader stumbled, the innermost; its text is '{' or '['.
std::optional<SyntaxProblem> open_bracket(const std::vector<std::string>& lines,
                                          const SyntaxProblem& noticed) {
  std::vector<SyntaxProblem> open;
  char quote = 0;
  for (int row = 0; row <= std::min(noticed.line, static_cast<int>(lines.size()) - 1); ++row) {
    const std::string& line = lines[static_cast<std::size_t>(row)];
    const int end = row < noticed.line ? static_cast<int>(line.size())
                                       : std::min(noticed.column, static_cast<int>(line.size()));
    for (int column = 0; column < end; ++column) {
      const char c = line[static_cast<std::size_t>(column)];
      if (quote != 0)
        quote = c == quote ? '\0' : quote;
      else if ((c == '"' || c == '\'') && begins_value(line, column))
        quote = c;
      else if (c == '{' || c == '[')
        open.push_back({row, column, std::string(1, c)});
      else if ((c == '}' || c == ']') && !open.empty())
        open.pop_back();
    }
  }
  if (open.empty()) return std::nullopt;
  return open.back();
}

}  // namespace

SyntaxProblem explain_syntax(const std::string& content, const SyntaxProblem& noticed) {
  const std::vector<std::string> lines = lines_of(content);
  const int last = static_cast<int>(lines.size()) - 1;
  if (noticed.text.find(" flow") != std::string::npos)
    if (const auto open = open_bracket(lines, noticed))
      return {open->line, open->column,
              fmt::format("this {} is not closed: its {} is missing", open->text,
                          open->text == "{" ? "}" : "]")};
  const int at = noticed.line;
  if (at < 0 || at > last) return noticed;
  const auto line = [&](int i) -> const std::string& { return lines[static_cast<std::size_t>(i)]; };
  if (line(at).substr(0, line(at).find_first_not_of(" \t")).find('\t') != std::string::npos)
    return {at, 0, "a tab: indent with spaces"};
  if (noticed.text == "end of map not found")
    return {at, indent(line(at)),
            "this line is indented like no line above it: give it the indent of its neighbours"};
  if (noticed.text != "illegal map value") return noticed;
  if (has_two_colons(line(at)))
    return {at, noticed.column, "a value that holds \": \" has to stand in quotes"};
  int before = at - 1;
  while (before >= 0 && line(before).empty()) --before;
  if (before < 0) return noticed;
  if (!has_colon(line(before)))
    return {before, indent(line(before)),
            "expected \"key: value\", such as \"model: gpt2\": there is no colon"};
  if (indent(line(at)) > indent(line(before)))
    return {at, indent(line(at)),
            "this line is indented deeper than the key above it, which has a value already: give "
            "both the same indent"};
  return noticed;
}

}  // namespace ddpsim
