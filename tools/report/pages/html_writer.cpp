#include "tools/report/pages/html_writer.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/picture/svg.hpp"
#include "tools/report/records/field_kinds.hpp"
#include "tools/report/writers/text_writer.hpp"

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

/// A line such as "  turn          it was called later": a word, and far behind it what it means.
struct Term {
  std::string word, meaning;
};
std::optional<Term> term_in(std::string_view line) {
  if (!line.starts_with("  ")) return std::nullopt;
  line.remove_prefix(2);
  const std::size_t gap = line.find("  ");
  if (gap == std::string_view::npos || gap == 0) return std::nullopt;
  const std::size_t meaning = line.find_first_not_of(' ', gap);
  if (meaning == std::string_view::npos) return std::nullopt;
  return Term{std::string(line.substr(0, gap)), std::string(line.substr(meaning))};
}

/// Lines stay lines; terms with their meanings become a list of them.
std::string paragraph_of(const std::string& said) {
  std::string text, lines, terms;
  const auto end_lines = [&] {
    if (!lines.empty()) text += fmt::format("<p>{}</p>\n", lines_of(lines));
    lines.clear();
  };
  const auto end_terms = [&] {
    if (!terms.empty()) text += fmt::format("<dl>\n{}</dl>\n", terms);
    terms.clear();
  };
  std::istringstream stream(said);
  for (std::string line; std::getline(stream, line);) {
    if (const auto term = term_in(line)) {
      end_lines();
      terms += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped_xml(term->word),
                           escaped_xml(term->meaning));
    } else {
      end_terms();
      lines += line + "\n";
    }
  }
  end_terms();
  end_lines();
  return text;
}

/// The first line says what the table is; what follows is said in smaller letters.
std::string caption_of(const std::string& title) {
  const std::size_t end = title.find('\n');
  if (end == std::string::npos) return lines_of(title);
  return fmt::format("{}<br>\n<span class=\"note\">{}</span>", lines_of(title.substr(0, end)),
                     lines_of(title.substr(end + 1)));
}

/// Texts such as "0.43 | 0.44" stand below one another as numbers do.
bool is_of_figures(const Table& table, std::size_t column) {
  std::ptrdiff_t more = 0;
  for (const TableRow& row : table.rows) {
    const std::string* text = row[column].text();
    if (text == nullptr || text->empty()) continue;
    more += std::isalpha(static_cast<unsigned char>(text->front())) != 0 ? -1 : 1;
  }
  return more > 0;
}

bool cell_at_left(const Table& table, std::size_t column) {
  const Field& field = table.columns[column];
  return column == 0 || field.look.left || field.look.style == Look::Style::bar ||
         (field.kind == ValueKind::text && !is_of_figures(table, column));
}

/// The columns that are for people and have something to say.
std::vector<std::size_t> shown_columns(const Table& table) {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Field& field = table.columns[c];
    if (field.audience == Audience::programs) continue;
    if (c == 0 || table.rows.empty() || field.look.style == Look::Style::bar ||
        std::any_of(table.rows.begin(), table.rows.end(),
                    [&](const TableRow& row) { return !cell_text(field, row[c]).empty(); }))
      shown.push_back(c);
  }
  return shown;
}

/// A cell of a share of the longest: a bar, with the share for those who cannot see it.
std::string bar_cell(const Field& field, const FieldValue& value) {
  const auto* list = std::get_if<List>(&value.held);
  const FieldValue& first = list == nullptr || list->empty() ? value : list->front();
  const auto share = first.number();
  if (!share) return escaped_xml(cell_text(field, value));
  std::string text = fmt::format(
      "<span class=\"bar\" style=\"width:{:.1f}%\"></span><span class=\"only-heard\">{}</span>",
      std::clamp(*share, 0.0, 1.0) * 60,
      escaped_xml(cell_text(field.with(fields::percent), first)));
  for (std::size_t i = 1; list != nullptr && i < list->size(); ++i)
    text += fmt::format("<span class=\"beside-bar\">{}</span>",
                        escaped_xml(cell_text(field, (*list)[i])));
  return text;
}

std::string heading_cell(const Table& table, std::size_t column) {
  const Field& field = table.columns[column];
  const std::string label = escaped_xml(field.label);
  return fmt::format(
      "<th scope=\"col\"{}{}>{}</th>", cell_at_left(table, column) ? " class=\"l\"" : "",
      field.hint.empty() ? "" : fmt::format(" title=\"{}\"", escaped_xml(field.hint)),
      label.empty() ? "<span class=\"only-heard\">note</span>" : label);
}

/// An attribute with a JSON list of names and values; nothing where there are none.
std::string choices_of(const Picture& picture) {
  if (picture.choices.empty()) return "";
  return fmt::format(" data-choices=\"{}\"", escaped_xml(nlohmann::json(picture.choices).dump()));
}

std::string figure_of(const Picture& picture) {
  std::string text = fmt::format("<figure{}{}>\n",
                                 !picture.tasks.empty() ? " class=\"timeline\""
                                 : picture.half         ? " class=\"half\""
                                                        : "",
                                 choices_of(picture));
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
      text += paragraph_of(paragraph->text);
    else if (const auto* lines = std::get_if<Verbatim>(&block))
      text += fmt::format("<pre tabindex=\"0\">{}</pre>\n", escaped_xml(lines->text));
    else if (const auto* picture = std::get_if<Picture>(&block))
      text += figure_of(*picture);
    else if (const auto* table = std::get_if<Table>(&block))
      text += html_of(*table);
  }
  return text;
}

/// What stands below the section's heading: where the text begins with the same words, they are not
/// said again.
Page without_title(const ReportSection& section) {
  Page page = section.page;
  for (auto& block : page.blocks)
    if (auto* paragraph = std::get_if<Paragraph>(&block)) {
      if (paragraph->text.starts_with(section.title + "\n"))
        paragraph->text.erase(0, section.title.size() + 1);
      break;
    }
  return page;
}

std::string headline_of(const Headline& headline) {
  if (headline.empty()) return "";
  std::string text = "<dl class=\"headline\">\n";
  for (const auto& [value, about] : headline)
    text +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped_xml(value), escaped_xml(about));
  return text + "</dl>\n";
}

std::string html_of(const ReportSection& section) {
  std::string text = fmt::format("<section>\n<h2>{}</h2>\n", escaped_xml(section.title));
  text += headline_of(section.headline);
  if (!section.verdict.empty())
    text += fmt::format("<p class=\"verdict\">{}</p>\n", lines_of(section.verdict));
  text += html_of(without_title(section));
  for (const auto& [title, page] : section.folded)
    text += fmt::format("<details class=\"figures\"><summary>{}</summary>\n{}</details>\n",
                        escaped_xml(title), html_of(page));
  for (const auto& [name, content] : section.sources)
    text += fmt::format(
        "<details class=\"source\"><summary>{}</summary>\n<pre tabindex=\"0\">{}</pre></details>\n",
        escaped_xml(name), escaped_xml(content));
  return text + "</section>\n";
}

}  // namespace

void ReportSection::add_or_fold(std::string title, Page tables) {
  constexpr std::size_t most_rows = 16;
  std::size_t rows = 0;
  for (const auto& block : tables.blocks)
    if (const auto* table = std::get_if<Table>(&block)) rows += table->rows.size();
  if (rows > most_rows)
    folded.emplace_back(std::move(title), std::move(tables));
  else
    page.add(std::move(tables));
}

void ReportSection::add_notes(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  page.add(Paragraph{std::move(text)});
}

std::string html_of(const Table& table) {
  std::string text =
      "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"table\">"
      "<table>\n";
  if (!table.title.empty()) text += fmt::format("<caption>{}</caption>\n", caption_of(table.title));
  text += "<thead><tr>";
  const std::vector<std::size_t> shown = shown_columns(table);
  for (const std::size_t c : shown) text += heading_cell(table, c);
  text += "</tr></thead>\n<tbody>\n";
  for (const TableRow& row : table.rows) {
    text += "<tr>";
    for (const std::size_t c : shown) {
      const Field& field = table.columns[c];
      const std::string cell = field.look.style == Look::Style::bar
                                   ? bar_cell(field, row[c])
                                   : lines_of(cell_text(field, row[c]));
      if (c == 0)
        text += fmt::format("<th scope=\"row\">{}</th>", cell);
      else
        text += fmt::format("<td{}>{}</td>", cell_at_left(table, c) ? " class=\"l\"" : "", cell);
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
