#include "backend/link/nccl/gpu_all_reduce_timer.hpp"

#include <algorithm>

#include "backend/device/cuda/gpu_events.hpp"

namespace ddpsim {
namespace {

/// For the host to enqueue an all-reduce with its events, at most.
constexpr Duration longest_issue = std::chrono::microseconds{100};
constexpr GpuStream stream = 1;

}  // namespace

std::vector<Duration> time_gpu_all_reduces(Gpu& gpu, NcclLink& link, GpuWaiter& waiter,
                                           GpuClock& clock, Bytes size, int count, bool waiting) {
  const auto last = static_cast<std::uint32_t>(count);
  const GpuEvents events{2, last + 1};
  gpu.make_stream(first_stream);
  gpu.make_stream(stream);
  link.reserve_values(size, stream);
  clock.use({stream});
  clock.start_together();
  if (!waiting) {
    // They begin once all are enqueued: what the GPU takes, not how fast the host issues them.
    gpu.spin(first_stream, (count + 1) * longest_issue);
    gpu.record(GpuEvents::round(first_stream), first_stream);
    gpu.wait(stream, GpuEvents::round(first_stream));
  }
  for (std::uint32_t i = 0; i <= last; ++i) {
    gpu.record(events.start(i), stream);
    link.reduce_values(size, stream);
    gpu.record(events.end(i), stream);
    if (waiting) waiter.await(events.end(i));
  }
  waiter.await(events.end(last));
  std::vector<Instant> arrivals, ends;
  for (std::uint32_t i = 0; i <= last; ++i) {
    arrivals.push_back(clock.instant_of(events.start(i)));
    ends.push_back(clock.instant_of(events.end(i)));
  }
  const std::vector<Instant> starts = clock.latest(arrivals);
  std::vector<Duration> times;
  for (std::size_t i = 1; i < starts.size(); ++i)
    times.push_back(ends[i] - (waiting ? ends[i - 1] : std::min(starts[i], ends[i])));
  return times;
}

}  // namespace ddpsim
