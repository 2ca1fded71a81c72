#pragma once

#include <string>
#include <vector>

namespace ddpsim {

/// A text table: first column left, the others right, columns two blanks apart, a rule under the header.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ddpsim
