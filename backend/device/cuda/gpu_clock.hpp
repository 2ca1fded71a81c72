#pragma once

#include <vector>

#include "backend/device/cuda/gpu_waiter.hpp"
#include "backend/job/step_clock.hpp"

namespace ddpsim {

/// The time of a step on the host and on its GPU.
///
/// Host and GPU share no clock. A step begins with an event on an idle GPU; the host watches for
/// it, so both know that instant to a few microseconds, and everything counts from there.
class GpuClock {
 public:
  GpuClock(Gpu& gpu, GpuWaiter& waiter, Communicator& communicator);

  /// The streams of the next step besides the first one.
  void use(std::vector<GpuStream> streams) { streams_ = std::move(streams); }
  /// Returns with all streams idle, on all ranks at one instant, which is from then on the zero of
  /// `now`.
  void start_together();
  /// Returns on all ranks at one instant.
  void meet() { clock_.wait_until(clock_.agree_on_start()); }

  Instant now() const { return clock_.now(); }
  /// When a reached event of this step happened.
  Instant instant_of(int event) const;
  /// What the GPU's own clock showed at an instant of this step (see Gpu::note_clock, `noted` at
  /// the start of the step).
  Instant instant_at(std::uint64_t gpu_clock, std::uint64_t noted) const {
    return begun_ + std::chrono::nanoseconds{static_cast<std::int64_t>(gpu_clock - noted)};
  }
  /// The latest of every rank's k-th instant. Communicates.
  std::vector<Instant> latest(std::vector<Instant> mine) { return clock_.latest(std::move(mine)); }

 private:
  Gpu& gpu_;
  GpuWaiter& waiter_;
  StepClock clock_;
  std::vector<GpuStream> streams_;
  Instant begun_{};  ///< when the event at the beginning happened
};

}  // namespace ddpsim
