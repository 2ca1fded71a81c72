#pragma once

#include <string>
#include <vector>

namespace ddpsim {

/// Predicted above measured: two bars for each row, on one scale.
struct PairPicture {
  struct Row {
    std::string label;
    double predicted = 0, measured = 0;
    std::string remark{};  ///< behind the bars, after the error
    bool heading = false;  ///< the label alone
  };
  std::string title, description, unit;
  std::vector<Row> rows;
};

/// The rows below one another. Behind the bars stand both lengths and the error.
std::string pair_picture(const PairPicture& pairs);

}  // namespace ddpsim
