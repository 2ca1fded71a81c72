#pragma once

#include <chrono>

#include "backend/device/cuda/gpu.hpp"

namespace ddpsim {

/// The host waits for its GPU by looking again and again. So errors of CUDA and NCCL show while it
/// waits, and a rank that never arrives ends in a timeout, not in a hang.
class GpuWaiter {
 public:
  GpuWaiter(Gpu& gpu, std::chrono::milliseconds timeout) : gpu_(gpu), timeout_(timeout) {}

  /// Throws DeviceError for what went wrong in the work given so far.
  void check();

  /// Until the event has happened. Throws DeviceError after an error, or the timeout.
  void await(int event);

  /// Returns once done() is true; calls meanwhile() before each further look.
  template <typename Done, typename Meanwhile>
  void until(Done done, Meanwhile meanwhile) {
    for (Patience patience(*this); !done(); patience.spend()) meanwhile();
  }

 private:
  /// Looks for errors every millisecond, and gives up after the timeout.
  class Patience {
   public:
    explicit Patience(GpuWaiter& waiter) : waiter_(waiter) {}
    void spend();

   private:
    GpuWaiter& waiter_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point next_look_ = begin_ + std::chrono::milliseconds{1};
  };

  Gpu& gpu_;
  std::chrono::milliseconds timeout_;
};

}  // namespace ddpsim
