#pragma once

#include <cstddef>

#include "model/program/job.hpp"

namespace ddpsim::program {

/// So many of the ranks that have one program, but other places in groups, are checked: one of each
/// place where there are no more places, else the first ones.
inline constexpr std::size_t most_places_checked = 64;

/// Holds a job against what is always true of one, with a vector clock over the streams of each
/// program, for each place that its ranks have in the groups whose parts they work on:
///
/// - every index points to something, slices lie in their buffers and views in their parents;
/// - what is read was written by a task that has ended by then, or starts defined; what is written
///   is read and written by nobody at that time;
/// - a buffer of life `held` is used while it is there, and memory that comes from a stream's pool
///   is used behind all use of what went to that pool before;
/// - the input and the output of a collective have the sizes that it makes of one another;
/// - the members of a group issue the same collectives in one order, and each Send meets a Receive
///   of as many elements.
///
/// The program beside the others shares no memory with them: its indices alone are checked.
///
/// Throws std::invalid_argument with one line that names the task and the buffer. Cost: for n tasks
/// about n x (streams + tasks on streams of several lanes), and a logarithm for each operand; that
/// for each place.
void check(const Job& job);

}  // namespace ddpsim::program
