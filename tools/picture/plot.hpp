#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ddpsim {

/// A line of a plot.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x growing
  bool dashed = false;
  bool stairs = false;  ///< a value holds until the next point
  /// [point] how far it may lie off, as lowest and highest value; empty: not known.
  std::vector<std::pair<double, double>> band{};
  std::string ink{};  ///< a colour of picture.css; empty: one that no curve before it has
};

/// A point that is pointed out.
struct Mark {
  double x = 0, y = 0;
  std::string text;
};

/// A value that holds everywhere, such as a bound.
struct Level {
  double y = 0;
  std::string text;
};

/// Values that are as good as one another.
struct Zone {
  double low = 0, high = 0;
  std::string text;
};

/// Curves over one axis.
struct Plot {
  std::string title, description;
  std::string x_label, y_label;
  bool log_x = false, log_y = false, from_zero = false;
  bool half = false;                            ///< half a page wide
  std::function<std::string(double)> x_text{};  ///< of a tick; none: the number
  std::vector<double> x_ticks{};                ///< none: steps of 1, 2 or 5
  std::vector<Curve> curves;
  std::vector<Mark> marks{};
  std::vector<Level> levels{};
  std::vector<Zone> zones{};
};
std::string plot_picture(const Plot& plot);

/// The colour of a strategy's curves, on every picture the same; empty for what is none.
std::string ink_of_strategy(const std::string& name);

/// A table of numbers as colours, for two keys that are varied.
struct HeatMap {
  std::string title, description;
  std::string x_label, y_label;
  std::vector<std::string> x, y;
  std::vector<std::vector<double>> values;  ///< [y][x]; not a number: there is none
  bool low_is_good = true;
  double least = 0, most = 0;  ///< of the scale of colours; both the same: those of `values`
};
std::string heat_picture(const HeatMap& map);
/// Is its picture at most half a page wide?
bool is_half(const HeatMap& map);

}  // namespace ddpsim
