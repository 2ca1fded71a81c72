#pragma once

// Comma separated values (RFC 4180): written from tables, read back into values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/report/records/record.hpp"

namespace ddpsim {

/// A header of the columns' names and a line for every row, without what is for people alone.
std::string csv_of(const Table& table);

/// The two parts of that: a table that is too large to stand in memory twice is written line by
/// line.
std::string csv_header(const std::vector<Field>& columns);
std::string csv_line(const std::vector<Field>& columns, const TableRow& row);

/// A field of a CSV file: quoted where it holds a comma, a quote or a line break. Nothing is an
/// empty field; a real number has as many digits as it takes to read exactly the same number back.
/// What a terminal would obey in a text is spelled out (model/base/printable.hpp), but for line
/// breaks and tabs.
std::string csv_field(const FieldValue& value);

/// The value that csv_field() wrote into a field of that kind (no lists or records); none if the
/// text is no such value.
std::optional<FieldValue> value_from_csv(ValueKind kind, const std::string& text);

/// A record of a CSV file and the line it begins on, counted from 1.
struct CsvRecord {
  std::vector<std::string> fields;
  int line = 1;
};

/// The records of `text`, one after the other.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  /// The next record; false after the last. One that the text breaks off in (no line end, or an
  /// open quote) is not complete.
  bool next(CsvRecord& record);
  bool complete() const { return complete_; }
  /// Goes over lines that begin with #, before the next record; how many there were.
  int skip_comments();

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool complete_ = true;
};

}  // namespace ddpsim
