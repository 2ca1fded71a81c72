#pragma once

#include <cstdint>

namespace ddpsim {

// The numbers of a step's events: its start, the start of its last round, and a ring of marks that
// says how far the GPU has come; then of each task its end and, of a collective, its start; then
// the end of computing, and a pair for each all-reduce in the background.

inline constexpr int beginning_event = 0, last_round_event = 1, first_mark = 2, marks = 4;

constexpr int end_event(std::uint32_t task) {
  return first_mark + marks + 2 * static_cast<int>(task);
}
constexpr int start_event(std::uint32_t task) {
  return end_event(task) + 1;
}
/// `tasks`: how many the schedule has.
constexpr int computed_event(std::uint32_t tasks) {
  return end_event(tasks);
}
constexpr int background_start_event(std::uint32_t tasks, int index) {
  return computed_event(tasks) + 1 + 2 * index;
}
constexpr int background_end_event(std::uint32_t tasks, int index) {
  return background_start_event(tasks, index) + 1;
}

}  // namespace ddpsim
