#include "backend/nccl/step/gpu_all_reduce_timer.hpp"

#include <algorithm>

#include "backend/nccl/step/step_events.hpp"

namespace ddpsim {
namespace {

/// For the host to enqueue an all-reduce with its events, at most.
constexpr Duration longest_issue = std::chrono::microseconds{100};

}  // namespace

std::vector<Duration> time_gpu_all_reduces(Gpu& gpu, GpuCollectives& collectives, GpuWaiter& waiter,
                                           GpuStepClock& clock, Bytes size, int count,
                                           bool waiting) {
  const std::int64_t elements = std::max<std::int64_t>(1, size.count / 4);
  const auto last = static_cast<std::uint32_t>(count);
  collectives.reserve(Operation::all_reduce, size);
  clock.start_together();
  if (!waiting) {
    // They begin once all are enqueued: what the GPU takes, not how fast the host issues them.
    gpu.spin(Stream::compute, (count + 1) * longest_issue);
    gpu.record(last_round_event, Stream::compute);
    gpu.wait(Stream::communication, last_round_event);
  }
  for (std::uint32_t i = 0; i <= last; ++i) {
    gpu.record(start_event(i), Stream::communication);
    collectives.all_reduce(collectives.next_values(size), elements, DType::fp32);
    gpu.record(end_event(i), Stream::communication);
    if (waiting) waiter.await(end_event(i));
  }
  waiter.await(end_event(last));
  std::vector<Instant> arrivals, ends;
  for (std::uint32_t i = 0; i <= last; ++i) {
    arrivals.push_back(clock.instant_of(start_event(i)));
    ends.push_back(clock.instant_of(end_event(i)));
  }
  const std::vector<Instant> starts = clock.latest(arrivals);
  std::vector<Duration> times;
  for (std::size_t i = 1; i < starts.size(); ++i)
    times.push_back(ends[i] - (waiting ? ends[i - 1] : std::min(starts[i], ends[i])));
  return times;
}

}  // namespace ddpsim
