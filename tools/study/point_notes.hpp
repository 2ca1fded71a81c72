#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tools/study/grid.hpp"

namespace ddpsim {

/// Notes on the points of a grid, each said once: "...(at 2 of 6 points, the first cluster.nodes=4,
/// workload.batch=8)".
class PointNotes {
 public:
  /// The notes on a point, whose keys and values are `settings`. Call it for every point that was
  /// looked at, also where there is nothing to note.
  void add(const std::vector<Setting>& settings, const std::vector<std::string>& notes);

  /// In the order in which they were first added. `points`: all of the grid, of which those that
  /// were added may be the first ones. Where there is but one, its notes stand by themselves.
  std::vector<std::string> lines(std::size_t points) const;

 private:
  struct Noted {
    std::string text;
    std::vector<Setting> first;
    std::size_t points = 0;
  };
  std::vector<Noted> notes_;
  std::size_t added_ = 0;
};

/// Does one of the settings say how many ranks there are?
bool says_size(const std::vector<Setting>& settings);

/// A note where points, each its settings and its ranks, differ in ranks, though no setting says
/// how many there are.
std::vector<std::string> ranks_notes(
    const std::vector<std::pair<std::vector<Setting>, int>>& points);

}  // namespace ddpsim
