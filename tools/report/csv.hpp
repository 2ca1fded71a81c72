#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddpsim {

/// A field of a CSV file (RFC 4180): quoted where it holds a comma, a quote or a line break.
std::string csv_field(const std::string& text);

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

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool complete_ = true;
};

}  // namespace ddpsim
