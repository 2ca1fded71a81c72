#include "tools/report/writers/text_writer.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "model/base/quantity.hpp"
#include "tools/report/writers/text_width.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t gap = 2, longest_rule = 130, longest_bar = 40, shortest_bar = 10;

std::string number_text(const Look& look, double number) {
  return fmt::format(fmt::runtime(look.pattern), number * look.scale);
}

/// The cells of one column, and how wide it is.
struct Column {
  const Field* field = nullptr;
  std::size_t index = 0;           ///< among the table's
  std::vector<std::string> cells;  ///< [row]
  std::size_t natural = 0;         ///< columns of a terminal that the longest cell takes
  std::size_t width = 0;           ///< that it is given

  bool is_bar() const { return field->look.style == Look::Style::bar; }
  bool left() const { return index == 0 || is_bar() || field->look.left; }
};

/// Texts and bars can do with less than they would take.
std::size_t least_width(const Column& column, std::size_t page) {
  if (column.is_bar()) return std::min(column.natural, shortest_bar);
  if (column.field->kind != ValueKind::text) return column.natural;
  const std::size_t share = column.index == 0 ? 2 * page / 5 : page / 4;
  return std::min(column.natural, std::max<std::size_t>(share, 12));
}

/// `longest`: columns of a whole bar.
std::string bar_text(const Field& field, const FieldValue& value, std::size_t longest) {
  const auto* list = std::get_if<List>(&value.held);
  const FieldValue& share = list == nullptr || list->empty() ? value : list->front();
  const auto number = share.number();
  if (!number) return cell_text(field, value);
  const double cells = std::clamp(*number, 0.0, 1.0) * static_cast<double>(longest);
  std::string text(static_cast<std::size_t>(std::lround(cells)), '#');
  for (std::size_t i = 1; list != nullptr && i < list->size(); ++i)
    text += cell_text(field, (*list)[i]);
  return text;
}

std::vector<Column> columns_of(const Table& table) {
  std::vector<Column> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Field& field = table.columns[c];
    if (field.audience == Audience::programs) continue;
    Column& column = columns.emplace_back(Column{&field, c, {}, display_width(field.label), 0});
    for (const TableRow& row : table.rows) {
      column.cells.push_back(column.is_bar() ? bar_text(field, row[c], longest_bar)
                                             : cell_text(field, row[c]));
      column.natural = std::max(column.natural, display_width(column.cells.back()));
    }
  }
  return columns;
}

/// The width of all columns side by side; `each` gives that of one.
template <typename Each>
std::size_t sum_of(const std::vector<Column>& columns, Each each) {
  std::size_t sum = columns.empty() ? 0 : gap * (columns.size() - 1);
  for (const Column& column : columns) sum += each(column);
  return sum;
}

/// Gives every column its width; returns the headings of those that had to go.
std::vector<std::string_view> fit(std::vector<Column>& columns, PageWidth page) {
  for (Column& column : columns) column.width = column.natural;
  if (!page) return {};
  const auto least = [&](const Column& column) { return least_width(column, *page); };
  std::map<std::size_t, std::string_view> left_out;  // [index]
  while (columns.size() > 1 && sum_of(columns, least) > *page) {
    auto worst = columns.begin() + 1;
    for (auto each = worst; each != columns.end(); ++each)
      if (each->field->importance <= worst->field->importance) worst = each;
    left_out.emplace(worst->index, worst->field->label);
    columns.erase(worst);
  }
  // What is too long gives way, the longest first.
  std::size_t width = sum_of(columns, [](const Column& column) { return column.width; });
  while (width > *page) {
    Column* longest = nullptr;
    for (Column& column : columns)
      if (column.width > least(column) && (longest == nullptr || column.width > longest->width))
        longest = &column;
    if (longest == nullptr) break;
    --longest->width;
    --width;
  }
  if (columns.size() == 1) columns.front().width = std::min(columns.front().width, *page);
  std::vector<std::string_view> headings;
  for (const auto& [index, heading] : left_out) headings.push_back(heading);
  return headings;
}

/// Bars that have less room than they would take are drawn anew.
void shorten_bars(const Table& table, Column& column) {
  if (!column.is_bar() || column.width >= column.natural) return;
  const std::size_t lost = std::min(column.natural - column.width, longest_bar - 1);
  for (std::size_t r = 0; r < table.rows.size(); ++r)
    column.cells[r] = bar_text(*column.field, table.rows[r][column.index], longest_bar - lost);
}

/// One row on as many lines as its longest cell needs.
std::string row_text(const std::vector<Column>& columns, const std::vector<std::string>& cells) {
  std::vector<std::vector<std::string>> parts;
  std::size_t lines = 1;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    parts.push_back(wrapped(cells[c], columns[c].width));
    lines = std::max(lines, parts.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) {
    std::string line;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) line.append(gap, ' ');
      line += padded(i < parts[c].size() ? parts[c][i] : "", columns[c].width, !columns[c].left());
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string lines_within(const std::string& text, PageWidth width) {
  if (!width) return text.empty() || text.ends_with('\n') ? text : text + "\n";
  std::string result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    for (const std::string& part : wrapped(line, *width)) result += part + "\n";
  return result;
}

/// The table without what is said above and below; adds to `left_out`.
std::string grid_text(const Table& table, PageWidth width,
                      std::vector<std::string_view>& left_out) {
  std::vector<Column> columns = columns_of(table);
  left_out = fit(columns, width);
  for (Column& column : columns) shorten_bars(table, column);
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.emplace_back(column.field->label);
  std::string text = row_text(columns, cells);
  const std::size_t rule = sum_of(columns, [](const Column& column) { return column.width; });
  text += std::string(std::min(rule, longest_rule), '-') + "\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (std::size_t c = 0; c < columns.size(); ++c) cells[c] = columns[c].cells[r];
    text += row_text(columns, cells);
  }
  return text;
}

/// `said`: the remark below the table before, which is not repeated.
std::string table_text(const Table& table, PageWidth width, std::string& said) {
  std::vector<std::string_view> left_out;
  std::string text = lines_within(table.title, width) + grid_text(table, width, left_out);
  if (!left_out.empty()) {
    std::erase(left_out, std::string_view{});  // a mark has no name
    const std::string remark =
        fmt::format("(left out: {}; --wide shows all)", fmt::join(left_out, ", "));
    if (remark != said) text += lines_within(remark, width);
    said = remark;
  }
  return text + lines_within(table.notes, width);
}

}  // namespace

std::string cell_text(const Field& field, const FieldValue& value) {
  const Look& look = field.look;
  if (value.is_nothing()) return std::string(look.absent);
  if (const std::string* text = value.text()) return printable(*text);
  if (const auto* flag = std::get_if<bool>(&value.held)) return *flag ? "yes" : "no";
  if (const auto* list = std::get_if<List>(&value.held)) {
    std::vector<std::string> parts;
    for (const FieldValue& each : *list) parts.push_back(cell_text(field, each));
    return fmt::format("{}", fmt::join(parts, look.between));
  }
  if (const auto* texts = std::get_if<Texts>(&value.held)) {
    std::vector<std::string> parts;
    for (const auto& [key, given] : *texts) parts.push_back(fmt::format("{}={}", key, given));
    return printable(fmt::format("{}", fmt::join(parts, "; ")));
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value.held)) {
    if (look.style == Look::Style::size) return to_string(Bytes{*whole});
    if (look.pattern == Look{}.pattern) return fmt::format("{}", *whole);
  }
  const auto number = value.number();
  return number ? number_text(look, *number) : std::string();  // a record has no place in a cell
}

std::string text_of(const Table& table, PageWidth width) {
  std::string said;
  return table_text(table, width, said);
}

std::string text_of(const Page& page, PageWidth width) {
  std::string text, said;
  for (const auto& block : page.blocks) {
    if (std::holds_alternative<Picture>(block)) continue;
    if (!text.empty()) text += "\n";
    if (const auto* paragraph = std::get_if<Paragraph>(&block))
      text += lines_within(paragraph->text, width);
    else if (const auto* lines = std::get_if<Verbatim>(&block))
      text += lines_within(lines->text, {});
    else if (const auto* drawing = std::get_if<Drawing>(&block))
      text += drawing->draw(width);
    else
      text += table_text(std::get<Table>(block), width, said);
  }
  return text;
}

}  // namespace ddpsim
