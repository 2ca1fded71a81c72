#include "backend/device/cuda/gpu_waiter.hpp"

#include <thread>

#include <fmt/format.h>

#include "backend/device_error.hpp"

namespace ddpsim {

void GpuWaiter::Patience::spend() {
  const auto time = std::chrono::steady_clock::now();
  if (time < next_look_) return;
  next_look_ = time + std::chrono::milliseconds{1};
  waiter_.check();
  if (time - begin_ > waiter_.timeout_)
    throw DeviceError(fmt::format(
        "the GPU's work did not end within {:g} s; a rank may be gone, or waiting elsewhere",
        static_cast<double>(waiter_.timeout_.count()) / 1000));
  std::this_thread::yield();
}

void GpuWaiter::check() {
  if (const std::string problem = gpu_.failure(); !problem.empty()) throw DeviceError(problem);
}

void GpuWaiter::await(int event) {
  until([&] { return gpu_.reached(event); }, [] {});
  check();
}

}  // namespace ddpsim
