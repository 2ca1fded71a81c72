#include "backend/device/cuda/gpu_clock.hpp"

#include "backend/device/cuda/gpu_events.hpp"

namespace ddpsim {
namespace {

/// Between agreeing on a step's start and starting: for the message to reach every rank.
constexpr Duration head_start = std::chrono::milliseconds{2};

}  // namespace

GpuClock::GpuClock(Gpu& gpu, GpuWaiter& waiter, Communicator& communicator)
    : gpu_(gpu), waiter_(waiter), clock_(communicator, head_start) {}

void GpuClock::start_together() {
  for (const GpuStream stream : streams_) {
    gpu_.record(GpuEvents::beginning, stream);
    gpu_.wait(first_stream, GpuEvents::beginning);
  }
  gpu_.record(GpuEvents::beginning, first_stream);
  waiter_.await(GpuEvents::beginning);
  clock_.align();
  const Instant agreed = clock_.agree_on_start();
  clock_.wait_until(agreed);
  clock_.begin_at(agreed);
  gpu_.record(GpuEvents::beginning, first_stream);
  for (const GpuStream stream : streams_) gpu_.wait(stream, GpuEvents::beginning);
  waiter_.await(GpuEvents::beginning);
  begun_ = now();
}

Instant GpuClock::instant_of(int event) const {
  return begun_ + gpu_.between(GpuEvents::beginning, event);
}

}  // namespace ddpsim
