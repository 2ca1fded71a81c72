#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// A drawn timeline: the picture, and what a script needs to answer a pointer.
struct TimelinePicture {
  std::string svg;
  /// The first entries of `tasks`, to `end`, as a JSON object by themselves: what a script needs to
  /// zoom.
  std::string frame;
  /// One JSON object, safe inside a <script> element:
  ///
  ///     tick_ns          one unit of every time below, in nanoseconds
  ///     left, width      of the part of the picture that shows time, in pixels
  ///     axis, bottom     the rows between which the lanes lie
  ///     end              of the longest step
  ///     paints           what bars are drawn as, each a class of picture.css
  ///     names, details   texts, two entries each: how many letters of the text before it begins
  ///                      with, and the rest
  ///     lanes[]          label; step: its strategy; top, height in pixels; and tasks:
  ///                      flat groups of (gap since the end of the one before, length, name,
  ///                      detail, why it waits, paint): numbers of texts, -1 for none, a name
  ///                      less that of the one before; a detail of -2: the host launches the task
  ///                      of this name
  std::string tasks;
};

/// The timelines of rank 0, one below the other on one scale: of each step the host's launches, the
/// streams of the device, and the buckets from their first gradient to the end of their all-reduce.
/// Where no kernel runs while a collective is under way the lane of the kernels is hatched, and
/// otherwise where one waits to begin, for the slowest rank or its hand-over.
/// `id`: a name that no other picture of the same page has.
TimelinePicture timeline_picture(const Scenario& scenario, const std::vector<NamedStep>& steps,
                                 std::string_view id = "timeline");

}  // namespace ddpsim
