#pragma once

#include <cstdint>

#include "backend/device/cuda/gpu.hpp"

namespace ddpsim {

/// The numbers of a step's events.
struct GpuEvents {
  static constexpr int marks = 4;
  static constexpr int beginning = 0;  ///< of the step, on all streams

  int streams = 0;          ///< of the job
  std::uint32_t tasks = 0;  ///< of the program

  /// The start of the last round, on each stream.
  static constexpr int round(GpuStream stream) { return beginning + 1 + stream; }
  /// A ring of marks on each stream, that say how far the GPU has come.
  constexpr int mark(GpuStream stream, int number) const {
    return round(streams) + marks * stream + number % marks;
  }
  /// A task has ended.
  constexpr int end(std::uint32_t task) const {
    return mark(streams, 0) + 2 * static_cast<int>(task);
  }
  /// The stream has come to a collective or message.
  constexpr int start(std::uint32_t task) const { return end(task) + 1; }
  /// The all-reduces beside the program.
  constexpr int beside_start(int index) const { return end(tasks) + 2 * index; }
  constexpr int beside_end(int index) const { return beside_start(index) + 1; }
};

}  // namespace ddpsim
