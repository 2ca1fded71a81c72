#include "tools/report/writers/csv.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tools/report/writers/json_writer.hpp"

namespace ddpsim {
namespace {

std::string quoted_if_needed(const std::string& given) {
  std::string text = printable(given, "\n\t");
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

template <typename Cell>
std::string line_of(const std::vector<Field>& columns, Cell cell) {
  std::string line;
  bool first = true;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].audience == Audience::people) continue;
    if (!first) line += ',';
    line += cell(c);
    first = false;
  }
  return line + "\n";
}

}  // namespace

std::string csv_field(const FieldValue& value) {
  if (value.is_nothing()) return "";
  if (const std::string* text = value.text()) return quoted_if_needed(*text);
  if (const auto* flag = std::get_if<bool>(&value.held)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value.held)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value.held)) return fmt::format("{}", *real);
  if (const auto* texts = std::get_if<Texts>(&value.held)) {
    std::string all;
    for (const auto& [key, text] : *texts)
      all += fmt::format("{}{}={}", all.empty() ? "" : "; ", key, text);
    return quoted_if_needed(all);
  }
  return quoted_if_needed(one_line(json_of(value)));
}

std::string csv_header(const std::vector<Field>& columns) {
  return line_of(columns,
                 [&](std::size_t c) { return quoted_if_needed(std::string(columns[c].name)); });
}

std::string csv_line(const std::vector<Field>& columns, const TableRow& row) {
  return line_of(columns, [&](std::size_t c) { return csv_field(row[c]); });
}

std::string csv_of(const Table& table) {
  std::string text = csv_header(table.columns);
  for (const TableRow& row : table.rows) text += csv_line(table.columns, row);
  return text;
}

std::optional<FieldValue> value_from_csv(ValueKind kind, const std::string& text) {
  if (text.empty()) return FieldValue();
  switch (kind) {
    case ValueKind::text:
      return FieldValue(text);
    case ValueKind::whole:
      if (const auto whole = parse_integer(text)) return FieldValue(*whole);
      return std::nullopt;
    case ValueKind::real:
      if (const auto real = parse_number(text)) return FieldValue(*real);
      return std::nullopt;
    case ValueKind::flag:
      if (text == "true" || text == "false") return FieldValue(text == "true");
      return std::nullopt;
    case ValueKind::list:
    case ValueKind::record:
      return std::nullopt;
  }
  return std::nullopt;
}

int CsvReader::skip_comments() {
  const int before = line_;
  while (at_ < text_.size() && text_[at_] == '#') {
    at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
    ++line_;
  }
  return line_ - before;
}

bool CsvReader::next(CsvRecord& record) {
  if (at_ >= text_.size()) return false;
  record.fields.assign(1, "");
  record.line = line_;
  complete_ = false;
  bool quoted = false;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    std::string& field = record.fields.back();
    if (c == '"') {
      if (quoted && at_ < text_.size() && text_[at_] == '"')
        field += text_[at_++];
      else
        quoted = !quoted;
    } else if (c == ',' && !quoted) {
      record.fields.emplace_back();
    } else if (c == '\n' && !quoted) {
      complete_ = true;
      break;
    } else if (quoted || c != '\r' || at_ >= text_.size() || text_[at_] != '\n') {
      field += c;
    }
  }
  return true;
}

}  // namespace ddpsim
