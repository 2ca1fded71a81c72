#include "tools/report/writers/markdown_writer.hpp"

#include <cctype>
#include <sstream>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "tools/report/records/field_kinds.hpp"
#include "tools/report/writers/text_writer.hpp"

namespace ddpsim {
namespace {

bool is_word(const std::string& text, std::size_t at) {
  return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

/// Text that reads as itself: what Markdown takes for marks is escaped, and what a terminal would
/// obey is spelled out (model/base/printable.hpp). An underscore within a word is no mark.
std::string escaped(const std::string& given) {
  constexpr std::size_t longest = 2000;
  const std::string text = cut_in_middle(printable(given), longest);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool within_word = i > 0 && is_word(text, i - 1) && is_word(text, i + 1);
    if (std::string_view("\\|*`<[").find(c) != std::string_view::npos ||
        (c == '_' && !within_word) || (c == '#' && i == 0))
      result += '\\';
    result += c;
  }
  return result;
}

/// Lines stay lines.
std::string paragraph(const std::string& text) {
  std::string result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) result += (result.empty() ? "" : "  \n") + escaped(line);
  return result.empty() ? result : result + "\n";
}

std::string code(const std::string& text) {
  const bool ends = text.empty() || text.back() == '\n';
  return fmt::format("```\n{}{}```\n", printable(text, "\n"), ends ? "" : "\n");
}

bool at_left(const Table& table, std::size_t column) {
  const Look& look = table.columns[column].look;
  return column == 0 || look.left || look.style == Look::Style::bar;
}

/// A bar is too much for a cell; its share of the longest is said instead.
Field without_bar(Field field) {
  return field.look.style == Look::Style::bar ? field.with(fields::percent) : field;
}

}  // namespace

std::string markdown_of(const Table& table) {
  const std::string above = paragraph(table.title), below = paragraph(table.notes);
  std::string header = "|", rule = "|", rows;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].audience == Audience::programs) continue;
    header += fmt::format(" {} |", escaped(std::string(table.columns[c].label)));
    rule += at_left(table, c) ? "---|" : "--:|";
  }
  for (const TableRow& row : table.rows) {
    rows += "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (table.columns[c].audience != Audience::programs)
        rows += fmt::format(" {} |", escaped(cell_text(without_bar(table.columns[c]), row[c])));
    rows += "\n";
  }
  return fmt::format("{}{}{}\n{}\n{}{}{}", above, above.empty() ? "" : "\n", header, rule, rows,
                     below.empty() ? "" : "\n", below);
}

std::string markdown_of(const Page& page) {
  std::string text;
  for (const auto& block : page.blocks) {
    if (std::holds_alternative<Picture>(block)) continue;
    if (!text.empty()) text += "\n";
    if (const auto* sentences = std::get_if<Paragraph>(&block))
      text += paragraph(sentences->text);
    else if (const auto* lines = std::get_if<Verbatim>(&block))
      text += code(lines->text);
    else if (const auto* drawing = std::get_if<Drawing>(&block))
      text += code(drawing->draw({}));
    else
      text += markdown_of(std::get<Table>(block));
  }
  return text;
}

}  // namespace ddpsim
