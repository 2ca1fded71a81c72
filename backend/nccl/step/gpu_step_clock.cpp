#include "backend/nccl/step/gpu_step_clock.hpp"

#include "backend/nccl/step/step_events.hpp"

namespace ddpsim {
namespace {

/// Between agreeing on a step's start and starting: for the message to reach every rank.
constexpr Duration head_start = std::chrono::milliseconds{2};

}  // namespace

GpuStepClock::GpuStepClock(Gpu& gpu, GpuWaiter& waiter, Communicator& communicator)
    : gpu_(gpu), waiter_(waiter), clock_(communicator, head_start) {}

void GpuStepClock::start_together() {
  for (const Stream stream : {Stream::communication, Stream::aside}) {
    gpu_.record(beginning_event, stream);
    gpu_.wait(Stream::compute, beginning_event);
  }
  gpu_.record(beginning_event, Stream::compute);
  waiter_.await(beginning_event);
  clock_.align();
  const Instant agreed = clock_.agree_on_start();
  clock_.wait_until(agreed);
  clock_.begin_at(agreed);
  gpu_.record(beginning_event, Stream::compute);
  gpu_.wait(Stream::communication, beginning_event);
  gpu_.wait(Stream::aside, beginning_event);
  waiter_.await(beginning_event);
  begun_ = now();
}

Instant GpuStepClock::instant_of(int event) const {
  return begun_ + gpu_.between(beginning_event, event);
}

}  // namespace ddpsim
