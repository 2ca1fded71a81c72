#pragma once

#include <string>
#include <vector>

#include "tools/study/names.hpp"
#include "tools/study/shown_memory.hpp"

namespace ddpsim {

/// The memory of rank 0 of each step, below its streams and as high as the step that takes the most
/// needs.
class MemoryLanes {
 public:
  MemoryLanes(const Scenario& scenario, const std::vector<NamedStep>& steps);

  /// Puts the lane of a step there, in pixels. Returns its lower end.
  double place(std::size_t step, double top);
  /// The kinds of memory on one another, in the order of shown_memory_kinds from below, each said
  /// by its title. Times are in `tick`s, of `all` from left to right; each piece of them shows the
  /// highest that is reached in it. They are no paths, which a page draws anew when it is zoomed.
  std::string areas(Duration tick, Duration all) const;
  /// What stands before the lanes, to the left of `right`.
  std::string labels(double right) const;
  /// What the colours mean, for a legend: of each kind, from below, words and a box.
  struct Key {
    std::string words, box;
  };
  /// `packed`: packed gradients stand in the place of buckets, as in steps that have units alone.
  static std::vector<Key> legend(bool packed);

 private:
  struct Lane {
    std::vector<ShownMemory> memory;
    Bytes peak;
    Instant end{};
    double top = 0;
  };
  std::string areas(const Lane& lane, Duration tick, Duration all) const;

  std::vector<Lane> lanes_;
  Bytes highest_;
};

}  // namespace ddpsim
