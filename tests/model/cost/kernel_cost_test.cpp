#include "model/cost/kernel_cost.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/model/workload/timed.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// 100 SMs; half of 1 TB/s of memory reached, half of 32.768 TFLOP/s.
Device half_device() {
  Device device = timed::round_device();
  device.memory_efficiency = 0.5;
  device.compute_capability = 90;
  device.peak.fill(teraflops_per_second(32.768));
  device.gemm_efficiency.fill(0.5);
  return device;
}

Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, Bytes traffic = {}) {
  Kernel kernel;
  kernel.gemm = Gemm{m, n, k};
  kernel.traffic = traffic;
  return kernel;
}

KernelCost kernel_cost_of(const Kernel& kernel, const Device& device = half_device()) {
  return kernel_cost(kernel, device, 6us, Caller::library);
}

constexpr Duration ramp = 3200ns;  // per launch

}  // namespace

TEST_CASE("a kernel that only moves memory takes its traffic over the bandwidth",
          "[model][kernel_cost]") {
  // 1 MB at 500 GB/s: 2 us, and the ramp of each launch.
  const KernelCost one = streaming_cost({1'000'000}, 1, half_device(), 6us, Caller::library);
  CHECK(one.work == 2us + ramp);
  CHECK(one.last_launch == one.work);
  CHECK(one.memory_fraction == 1);
  CHECK(one.launches == 1);
  const KernelCost four = streaming_cost({1'000'000}, 4, half_device(), 6us, Caller::library);
  CHECK(four.work == 2us + 4 * ramp);
  CHECK(four.last_launch == Duration{3'700ns});  // a quarter of it
  CHECK(four.launches == 4);

  Kernel kernel;
  kernel.traffic = {1'000'000};
  kernel.launches = 4;
  CHECK(kernel_cost_of(kernel).work == four.work);
}

TEST_CASE("the host pays for every launch, by who enqueues it", "[model][kernel_cost]") {
  for (const Caller caller :
       {Caller::forward_module, Caller::autograd, Caller::python_loop, Caller::library}) {
    const KernelCost cost = streaming_cost({4}, 5, half_device(), 6us, caller);
    CHECK(in_us(cost.host) == Approx(5 * 6 * launches_per_operation(caller)));
  }
  // Python modules cost more than autograd, that more than a loop, that more than one library call.
  CHECK(launches_per_operation(Caller::forward_module) > launches_per_operation(Caller::autograd));
  CHECK(launches_per_operation(Caller::autograd) > launches_per_operation(Caller::python_loop));
  CHECK(launches_per_operation(Caller::python_loop) > launches_per_operation(Caller::library));
  CHECK(launches_per_operation(Caller::library) == 1);
}

TEST_CASE("a GEMM bound by arithmetic takes its operations over what the device reaches",
          "[model][kernel_cost]") {
  // 10 x 10 tiles of 128 fill 100 SMs: 2 x 1280 x 1280 x 1000 = 3.2768e9 at 16.384e12 a second.
  const KernelCost cost = kernel_cost_of(gemm(1280, 1280, 1000));
  CHECK(cost.work == 200us + ramp);
  CHECK(cost.memory_fraction == 0);
  // 50 MB beside it take half of that time.
  CHECK(kernel_cost_of(gemm(1280, 1280, 1000, {50'000'000})).work == 200us + ramp);
  CHECK(kernel_cost_of(gemm(1280, 1280, 1000, {50'000'000})).memory_fraction == Approx(0.5));
}

TEST_CASE("a GEMM bound by memory takes its traffic", "[model][kernel_cost]") {
  // 200 MB at 500 GB/s.
  const KernelCost cost = kernel_cost_of(gemm(1280, 1280, 1000, {200'000'000}));
  CHECK(cost.work == 400us + ramp);
  CHECK(cost.memory_fraction == Approx(1));
}

TEST_CASE("a measured time stands in place of the law", "[model][kernel_cost]") {
  Kernel kernel = gemm(1280, 1280, 1000, {200'000'000});
  kernel.time = 30us;
  kernel.launches = 3;
  const KernelCost cost = kernel_cost_of(kernel);
  CHECK(cost.work == 30us);
  CHECK(cost.last_launch == 10us);
  CHECK(cost.launches == 3);
  CHECK(cost.host == 18us);
  CHECK(cost.memory_fraction == 0.5F);
  // The device need not even know the type.
  Device device = half_device();
  device.peak.fill({});
  CHECK(kernel_cost_of(kernel, device).work == 30us);
}

TEST_CASE("types are as fast as the device says", "[model][kernel_cost]") {
  Device device = half_device();
  device.peak[static_cast<std::size_t>(DType::bf16)] = teraflops_per_second(327.68);
  device.gemm_efficiency[static_cast<std::size_t>(DType::bf16)] = 0.25;
  Kernel kernel = gemm(1280, 1280, 1000);
  kernel.type = DType::bf16;
  CHECK(kernel_cost_of(kernel, device).work == 40us + ramp);  // 81.92 instead of 16.384 TFLOP/s
}

TEST_CASE("a type the device lacks is refused by name", "[model][kernel_cost]") {
  Device device = half_device();
  device.peak[static_cast<std::size_t>(DType::fp16)] = {};
  Kernel kernel = gemm(128, 128, 128);
  kernel.type = DType::fp16;
  CHECK_THROWS_WITH(kernel_cost_of(kernel, device),
                    Catch::Contains("round") && Catch::Contains("fp16"));
  CHECK_THROWS_AS(kernel_cost_of(kernel, device), std::invalid_argument);
}

TEST_CASE("a synchronous device has no ramp", "[model][kernel_cost]") {
  Device device = half_device();
  device.synchronous = true;
  CHECK(streaming_cost({1'000'000}, 4, device, 6us, Caller::library).work == 2us);
  CHECK(kernel_cost_of(gemm(1280, 1280, 1000), device).work == 200us);
  CHECK(kernel_cost_of(gemm(1280, 1280, 1000, {200'000'000}), device).work == 400us);
  CHECK(kernel_cost_of(gemm(1280, 1280, 1000), device).memory_fraction == 0);
}
