#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddpsim {

/// A text table: first column left, the others right (the last left too, if it is text), columns
/// two blanks apart, a rule under the header.
class Table {
 public:
  enum class Last : std::uint8_t { number, text };
  explicit Table(std::vector<std::string> header, Last last = Last::number)
      : rows_{std::move(header)}, last_(last) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  Last last_;
};

}  // namespace ddpsim
