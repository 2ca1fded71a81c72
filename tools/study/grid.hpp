#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// A key and the values it takes.
struct Axis {
  std::string key;
  std::vector<std::string> values;
};

/// Reads "a,b,c". Commas within brackets, braces and quotes do not separate. A value that begins
/// with a number and holds ".." is a range, with both its ends where a step meets the last:
///
///     2..8            2, 3, 4, 5, 6, 7, 8
///     2..8+2          2, 4, 6, 8
///     1MiB..64MiB*2   1MiB, 2MiB, 4MiB, ..., 64MiB
///     512KiB..1MiB+256KiB   512KiB, 768KiB, 1024KiB: all in the unit of the first
///
/// `written`: the flag with these values, such as "--gpus 8..64*2", for errors. Throws InputError
/// for what is none of these, for a value given twice, and for more values than a grid may have
/// points.
std::vector<std::string> parse_values(const std::string& written, std::string_view values);

/// Reads "KEY=a,b,c", the value of --vary, likewise.
Axis parse_axis(const std::string& text);

/// Every combination of the axes' values; the last axis changes fastest.
class Grid {
 public:
  static constexpr std::size_t most_points = 1'000'000;

  /// Throws InputError if a key stands twice or there are more than `most_points`.
  explicit Grid(std::vector<Axis> axes);

  const std::vector<Axis>& axes() const { return axes_; }
  std::size_t points() const { return points_; }
  /// [axis] which of its values a point takes.
  std::vector<std::size_t> indices(std::size_t point) const;
  std::size_t point_of(const std::vector<std::size_t>& indices) const;
  /// The keys with their values, in the order of the axes, written as --vary.
  std::vector<Setting> settings(std::size_t point) const;

 private:
  std::vector<Axis> axes_;
  std::size_t points_ = 1;
};

/// Throws InputError where one of `set` gives a key that varies, and so would count for nothing, or
/// a key that a mapping of a varied key says, and so would count in its place; and for
/// `training.strategy`, in whose place `compare` says what is predicted.
void check_varied_alone(const Grid& grid, const std::vector<Setting>& set);

/// "cluster.nodes=2, training.bucket_cap=1MiB", for people.
std::string describe_point(const Grid& grid, std::size_t point);

}  // namespace ddpsim
