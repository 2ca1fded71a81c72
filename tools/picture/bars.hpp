#pragma once

#include <string>
#include <vector>

namespace ddpsim {

/// What something is made of, a bar for each row, its parts one after the other.
struct BarPicture {
  struct Part {
    std::string name;
    std::string paint;  ///< a colour of picture.css: "collective"
  };
  struct Row {
    std::string label;
    std::vector<double> lengths{};  ///< [part]; empty: the row is a heading
  };
  std::string title, description, unit;
  std::vector<Part> parts;
  std::vector<Row> rows;
};

/// The rows below one another on one scale, with each whole bar's length behind it; part by part
/// it is told to a pointer, and to those who hear the picture.
std::string bar_picture(const BarPicture& bars);

}  // namespace ddpsim
