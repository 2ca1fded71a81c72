#include "tools/report/records/record.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {

Record& Record::add(const Field& field, FieldValue value) {
  entries.push_back({&field, std::move(value)});
  return *this;
}

Record& Record::add(Record more) {
  entries.insert(entries.end(), std::make_move_iterator(more.entries.begin()),
                 std::make_move_iterator(more.entries.end()));
  return *this;
}

const FieldValue* Record::find(const Field& field) const {
  for (const NamedValue& entry : entries)
    if (entry.field == &field || entry.field->name == field.name) return &entry.value;
  return nullptr;
}

bool Record::operator==(const Record& other) const {
  return entries == other.entries;
}

bool FieldValue::is_nothing() const {
  const auto* real = std::get_if<double>(&held);
  return std::holds_alternative<Nothing>(held) || (real != nullptr && !std::isfinite(*real));
}

std::optional<double> FieldValue::number() const {
  if (const auto* whole = std::get_if<std::int64_t>(&held)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&held)) return *real;
  return std::nullopt;
}

bool FieldValue::operator==(const FieldValue& other) const {
  return held == other.held;
}

TableRow row_of(const std::vector<Field>& columns, const Record& record) {
  TableRow row;
  row.reserve(columns.size());
  for (const Field& column : columns) {
    const FieldValue* value = record.find(column);
    row.push_back(value == nullptr ? FieldValue() : *value);
  }
  return row;
}

void Table::add(TableRow row) {
  assert(row.size() == columns.size());
  rows.push_back(std::move(row));
}

std::size_t Table::index_of(const Field& field) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Field& each) { return each.name == field.name; });
  if (found == columns.end())
    throw std::out_of_range(fmt::format("a table without the column {}", field.name));
  return static_cast<std::size_t>(found - columns.begin());
}

void drop_if_empty(Table& table, std::size_t column) {
  if (!std::ranges::all_of(table.rows,
                           [&](const TableRow& row) { return row[column].is_nothing(); }))
    return;
  const auto at = static_cast<std::ptrdiff_t>(column);
  table.columns.erase(table.columns.begin() + at);
  for (TableRow& row : table.rows) row.erase(row.begin() + at);
}

}  // namespace ddpsim
