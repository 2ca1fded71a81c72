#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/program/job.hpp"

namespace ddpsim::program {

/// Bytes of the device's memory by what they hold: [Holds].
class MemoryByKind {
 public:
  Bytes& operator[](Holds holds) { return bytes_[static_cast<std::size_t>(holds)]; }
  Bytes operator[](Holds holds) const { return bytes_[static_cast<std::size_t>(holds)]; }
  Bytes sum() const;

  bool operator==(const MemoryByKind&) const = default;

 private:
  std::array<Bytes, kinds_of_memory> bytes_{};
};

/// The device's memory that a rank's program holds, from its begin to its end.
struct MemoryAlong {
  struct Change {
    std::uint32_t before = 0;  ///< the host is about to issue this task; all tasks: it has ended
    Holds holds = Holds::parameter;
    Bytes bytes;            ///< that come; negative: that go
    std::uint8_t pool = 0;  ///< of the stream whose memory it is
  };
  MemoryByKind begin;           ///< of buffers that are not held: there throughout
  std::uint8_t first_pool = 0;  ///< of what is there throughout: that of the network's kernels
  std::vector<Change> changes;  ///< in the order of the host's issue
};

/// The stream on which the program computes the network; 0: it does not.
std::uint8_t stream_of_network(const Job& job, const Program& program);

/// What the buffers of the job take while the program runs: those of life `job` and `step` all the
/// time, those that are held from the task before which they come to that before which they go, as
/// a caching allocator counts them: what goes is free once the host has issued what used it. Views
/// and the host's memory take nothing. Of a program with several rounds: in one of them. Linear in
/// the number of buffers and holds.
MemoryAlong memory_along(const Job& job, const Program& program);

/// The highest that memory rises to.
struct MemoryPeak {
  MemoryByKind at_peak;      ///< when it is first reached
  MemoryByKind most;         ///< of each kind by itself, whenever that is
  std::uint32_t before = 0;  ///< the task that the host issues next when it is reached

  Bytes sum() const { return at_peak.sum(); }
};
MemoryPeak peak_of(const MemoryAlong& memory);

/// What a caching allocator has reserved of the device at the end, which keeps a pool for each
/// stream and gives none of it back: each pool's own peak, whenever that is, in whole segments.
///
///     reserved = sum over pools of ceil(peak of the pool / segment) x segment
///
/// The least that it reserves: memory that it cannot use for fragmentation comes on top.
/// Source: c10/cuda/CUDACachingAllocator.cpp, of which every segment is a multiple of 2 MiB.
Bytes reserved_for(const MemoryAlong& memory);
inline constexpr Bytes memory_segment{2 << 20};

}  // namespace ddpsim::program
