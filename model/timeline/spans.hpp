#pragma once

#include <cstdint>
#include <vector>

#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// What people take a stream for.
enum class StreamKind : std::uint8_t {
  host,
  compute,
  communication,  ///< collectives stand on it
  copies,         ///< between the memory of the device and the host's
  side,           ///< kernels beside the device's others
};

/// [stream] What each stream is in the rank's program.
std::vector<StreamKind> stream_kinds(const RankOfJob& rank);

/// A piece of a timeline on one stream: for people, traces and checks.
struct Span {
  std::uint8_t stream = 0;  ///< index into Job::streams; 0: the host's
  std::uint32_t task = 0;   ///< of the rank's program
  Instant start{}, end{};
};

/// Every span of one rank, by stream, then start: what the host spent on each task, and the work of
/// each on its own stream. Spans of no length are left out, and where the host stands still.
std::vector<Span> spans_of(const RankOfJob& rank);

}  // namespace ddpsim
