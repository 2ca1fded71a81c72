#include "tools/report/html_writer.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "tools/picture/svg.hpp"
#include "tools/report/field_kinds.hpp"
#include "tools/report/text_writer.hpp"

namespace ddpsim {

extern const std::string_view page_css, page_js;

namespace {

/// Lines stay lines.
std::string lines_of(std::string_view text) {
  std::string result;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) result += (result.empty() ? "" : "<br>\n") + escaped_xml(line);
  return result;
}

bool at_left(const Table& table, std::size_t column) {
  const Look& look = table.columns[column].look;
  return column == 0 || look.left || look.style == Look::Style::bar;
}

/// A cell of a share of the longest: a bar, with the share for those who cannot see it.
std::string bar_cell(const Field& field, const FieldValue& value) {
  const auto* list = std::get_if<List>(&value.held);
  const auto share = (list == nullptr || list->empty() ? value : list->front()).number();
  const std::string text = cell_text(field.with(fields::percent), value);
  if (!share) return escaped_xml(text);
  return fmt::format(
      "<span class=\"bar\" style=\"width:{:.1f}%\"></span><span "
      "class=\"beside-bar\">{}</span>",
      std::clamp(*share, 0.0, 1.0) * 60, escaped_xml(text));
}

std::string heading_cell(const Table& table, std::size_t column) {
  const Field& field = table.columns[column];
  const std::string label = escaped_xml(field.label);
  return fmt::format(
      "<th scope=\"col\"{}{}>{}</th>", at_left(table, column) ? " class=\"l\"" : "",
      field.hint.empty() ? "" : fmt::format(" title=\"{}\"", escaped_xml(field.hint)),
      label.empty() ? "<span class=\"only-heard\">note</span>" : label);
}

std::string figure_of(const Picture& picture) {
  std::string text =
      fmt::format("<figure{}>\n", picture.tasks.empty() ? "" : " class=\"timeline\"");
  if (!picture.title.empty()) text += fmt::format("<h3>{}</h3>\n", escaped_xml(picture.title));
  text += "<div class=\"drawn\" tabindex=\"0\" role=\"group\" aria-label=\"" +
          escaped_xml(picture.title) + "\">\n" + picture.svg + "</div>\n";
  if (!picture.tasks.empty())
    text += "<script type=\"application/json\" class=\"tasks\">" + picture.tasks + "</script>\n";
  if (!picture.caption.empty())
    text += fmt::format("<figcaption>{}</figcaption>\n", lines_of(picture.caption));
  return text + "</figure>\n";
}

std::string html_of(const Page& page) {
  std::string text;
  for (const auto& block : page.blocks) {
    if (const auto* paragraph = std::get_if<Paragraph>(&block))
      text += fmt::format("<p>{}</p>\n", lines_of(paragraph->text));
    else if (const auto* lines = std::get_if<Verbatim>(&block))
      text += fmt::format("<pre tabindex=\"0\">{}</pre>\n", escaped_xml(lines->text));
    else if (const auto* picture = std::get_if<Picture>(&block))
      text += figure_of(*picture);
    else if (const auto* table = std::get_if<Table>(&block))
      text += html_of(*table);
  }
  return text;
}

std::string html_of(const ReportSection& section) {
  std::string text = fmt::format("<section>\n<h2>{}</h2>\n", escaped_xml(section.title));
  if (!section.verdict.empty())
    text += fmt::format("<p class=\"verdict\">{}</p>\n", lines_of(section.verdict));
  text += html_of(section.page);
  for (const auto& [name, content] : section.sources)
    text += fmt::format(
        "<details class=\"source\"><summary>{}</summary>\n<pre tabindex=\"0\">{}</pre></details>\n",
        escaped_xml(name), escaped_xml(content));
  return text + "</section>\n";
}

}  // namespace

std::string html_of(const Table& table) {
  std::string text =
      "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"table\">"
      "<table>\n";
  if (!table.title.empty()) text += fmt::format("<caption>{}</caption>\n", lines_of(table.title));
  text += "<thead><tr>";
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].audience != Audience::programs) text += heading_cell(table, c);
  text += "</tr></thead>\n<tbody>\n";
  for (const TableRow& row : table.rows) {
    text += "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const Field& field = table.columns[c];
      if (field.audience == Audience::programs) continue;
      const std::string cell = field.look.style == Look::Style::bar
                                   ? bar_cell(field, row[c])
                                   : lines_of(cell_text(field, row[c]));
      if (c == 0)
        text += fmt::format("<th scope=\"row\">{}</th>", cell);
      else
        text += fmt::format("<td{}>{}</td>", at_left(table, c) ? " class=\"l\"" : "", cell);
    }
    text += "</tr>\n";
  }
  text += "</tbody></table></div>\n";
  if (!table.notes.empty())
    text += fmt::format("<p class=\"note\">{}</p>\n", lines_of(table.notes));
  return text;
}

std::string html_of(const std::string& title, const std::vector<ReportSection>& sections) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
      "form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>\n{1}</style></head>\n<body><main>\n<h1>{0}</h1>\n",
      escaped_xml(title), page_css);
  for (const ReportSection& section : sections) text += html_of(section);
  return text + fmt::format("</main>\n<script>\n{}</script>\n</body></html>\n", page_js);
}

}  // namespace ddpsim
