#include "tools/report/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ddpsim {

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < rows_[r].size(); ++c) {
      const bool left = c == 0 || (c + 1 == widths.size() && last_ == Last::text);
      line += c == 0 ? "" : "  ";
      line += left ? fmt::format("{:<{}}", rows_[r][c], widths[c])
                   : fmt::format("{:>{}}", rows_[r][c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r == 0) {
      std::size_t width = 0;
      for (const std::size_t w : widths) width += w + 2;
      text += std::string(std::min<std::size_t>(width - 2, 130), '-') + "\n";
    }
  }
  return text;
}

}  // namespace ddpsim
