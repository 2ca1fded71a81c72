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
  /// One JSON object, safe inside a <script> element:
  ///
  ///     tick_ns          one unit of every time below, in nanoseconds
  ///     left, width      of the part of the picture that shows time, in pixels
  ///     end              of the longest step
  ///     names, details   texts
  ///     lanes[]          label; step: its strategy; top, height in pixels; and tasks:
  ///                      flat groups of (gap since the end of the one before, length, name,
  ///                      detail, why it waits): indices into the texts, -1 for none
  std::string tasks;
};

/// The timelines of rank 0, one below the other on one scale: of each step the host's launches, the
/// streams of the device, and the buckets from their first gradient to the end of their all-reduce.
/// Where the compute stream stands still while a collective is under way it is hatched.
/// `id`: a name that no other picture of the same page has.
TimelinePicture timeline_picture(const Scenario& scenario, const std::vector<NamedStep>& steps,
                                 std::string_view id = "timeline");

}  // namespace ddpsim
