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

KernelCost cost_of(const Kernel& kernel, const Device& device = half_device()) {
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
  CHECK(cost_of(kernel).work == four.work);
}

TEST_CASE("a launch that follows another of its operation costs the host half a launch",
          "[model][kernel_cost]") {
  Kernel kernel;
  kernel.traffic = {1'000'000};
  kernel.launches = 3;
  const auto host = [&](Caller caller) {
    return kernel_cost(kernel, half_device(), 10us, caller).host;
  };
  kernel.followers = 2;
  // Of an operation that autograd runs the first launch takes four times a bare one.
  CHECK(host(Caller::autograd) == 4 * 10us + 2 * 5us);
  CHECK(host(Caller::library) == 10us + 2 * 5us);
  kernel.followers = 3;
  CHECK(host(Caller::autograd) == 3 * 5us);
  kernel.followers = 0;
  CHECK(host(Caller::autograd) == 3 * 4 * 10us);
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
  const KernelCost cost = cost_of(gemm(1280, 1280, 1000));
  CHECK(cost.work == 200us + ramp);
  CHECK(cost.memory_fraction == 0);
  // 50 MB beside it take half of that time.
  CHECK(cost_of(gemm(1280, 1280, 1000, {50'000'000})).work == 200us + ramp);
  CHECK(cost_of(gemm(1280, 1280, 1000, {50'000'000})).memory_fraction == Approx(0.5));
}

TEST_CASE("a GEMM bound by memory takes its traffic", "[model][kernel_cost]") {
  // 200 MB at 500 GB/s.
  const KernelCost cost = cost_of(gemm(1280, 1280, 1000, {200'000'000}));
  CHECK(cost.work == 400us + ramp);
  CHECK(cost.memory_fraction == Approx(1));
}

TEST_CASE("a GEMM is slower on tiles that do not fill the device", "[model][kernel_cost]") {
  // 110 tiles on 100 SMs: 1.1 of 2 waves, of which half of the empty 0.9 counts: 1 - 0.45 / 2 =
  // 0.775. 2 x 1280 x 1408 x 1000 operations take 220 us / 0.775.
  CHECK(cost_of(gemm(1280, 1408, 1000)).work == from_seconds(220e-6 / 0.775) + ramp);
  // Four tiles, each split along k into 8192 / 512 = 16: 64 of 100 SMs. 65.536 us / 0.64.
  CHECK(cost_of(gemm(256, 256, 8192)).work == Duration{102'400ns} + ramp);
  // 100 tiles of 32 columns: half of what tiles half as wide would hold. 50 us / 0.5.
  Kernel low = gemm(12800, 32, 1000);
  low.type = DType::bf16;
  CHECK(cost_of(low).work == 100us + ramp);
  // In fp32 there are tiles of 32 columns, 128 rows high, or 32 where those would leave SMs idle.
  low.type = DType::fp32;
  CHECK(cost_of(low).work == 50us + ramp);
  low.gemm = Gemm{1600, 8, 1000};  // 50 tiles of 32 x 32 on 100 SMs, a quarter of each is used
  CHECK(in_us(cost_of(low).work - ramp) == Approx(2 * 1600 * 8 * 1000 / 16.384e6 / 0.5 * 4));
  low.gemm = Gemm{8, 1600, 1000};
  CHECK(in_us(cost_of(low).work - ramp) == Approx(2 * 1600 * 8 * 1000 / 16.384e6 / 0.5 * 4));
  Device cpu = half_device();
  cpu.synchronous = true;  // knows nothing of such tiles
  low.gemm = Gemm{12800, 32, 1000};
  CHECK(cost_of(low, cpu).work == 100us);
  // A batch fills the device as rows do.
  Kernel batched = gemm(128, 128, 1000);
  batched.gemm->batch = 100;
  CHECK(cost_of(batched).work == 200us + ramp);
}

TEST_CASE("convolutions in TF32 gather their operands, narrow ones on narrow tiles",
          "[model][kernel_cost]") {
  Kernel kernel = gemm(1280, 1280, 1000);
  kernel.convolution = Convolution::windows;
  CHECK(cost_of(kernel).work == 200us + ramp);  // in fp32 as any product
  kernel.type = DType::tf32;
  CHECK(in_us(cost_of(kernel).work - ramp) == Approx(200 / 0.85));
  // 64 channels: 100 tiles of 128 x 64, at two thirds of that rate. 100 us of arithmetic.
  kernel.gemm = Gemm{12800, 64, 1000};
  CHECK(in_us(cost_of(kernel).work - ramp) == Approx(100 / (0.85 * 2 / 3)));
  // A weight's gradient of 64 channels lies across.
  kernel.gemm = Gemm{64, 12800, 1000};
  CHECK(in_us(cost_of(kernel).work - ramp) == Approx(100 / (0.85 * 2 / 3)));
  // Groups of many channels are as wide as ungrouped ones.
  kernel.gemm = Gemm{1280, 128, 1000, 10};
  CHECK(in_us(cost_of(kernel).work - ramp) == Approx(200 / 0.85));
  // Pictures of 14 x 14 pixels by themselves: 196 of 256 rows of two tiles are used, of one picture
  // as of 50 on 50 times the SMs.
  kernel.convolution = Convolution::pictures;
  kernel.gemm = Gemm{196, 64, 1000, 50};
  const double all = 100.0 * 196 / 256 / (0.85 * 2 / 3 * 196 / 256);
  CHECK(in_us(cost_of(kernel).work - ramp) == Approx(all));
  Device small = half_device();
  small.multiprocessors = 2;
  kernel.gemm = Gemm{196, 64, 1000, 1};
  CHECK(in_us(cost_of(kernel, small).work - ramp) == Approx(all / 50));
  // A channel by itself is no product of matrices: its arithmetic fits beside its bytes.
  kernel.convolution = Convolution::windows;
  kernel.gemm = Gemm{16384, 1, 9, 100};
  kernel.type = DType::fp32;
  CHECK(in_us(cost_of(kernel).work - ramp) == Approx(2 * 16384 * 9 * 100 / 16.384e6));
}

TEST_CASE("a kernel of few blocks leaves multiprocessors idle", "[model][kernel_cost]") {
  Kernel kernel;
  kernel.traffic = {1'000'000};  // 2 us on all of 100 SMs
  kernel.launches = 2;
  kernel.blocks = 50;
  CHECK(cost_of(kernel).work == 4us + 2 * ramp);
  CHECK(cost_of(kernel).last_launch == 2us + ramp);
  kernel.blocks = 100;
  CHECK(cost_of(kernel).work == 2us + 2 * ramp);
  kernel.blocks = 1000;
  CHECK(cost_of(kernel).work == 2us + 2 * ramp);
  // They are cuDNN's: a device without CUDA has others.
  kernel.blocks = 50;
  Device other = half_device();
  other.compute_capability = 0;
  CHECK(cost_of(kernel, other).work == 2us + 2 * ramp);
}

TEST_CASE("a measured time stands in place of the law", "[model][kernel_cost]") {
  Kernel kernel = gemm(1280, 1280, 1000, {200'000'000});
  kernel.time = 30us;
  kernel.launches = 3;
  const KernelCost cost = cost_of(kernel);
  CHECK(cost.work == 30us);
  CHECK(cost.last_launch == 10us);
  CHECK(cost.launches == 3);
  CHECK(cost.host == 18us);
  CHECK(cost.memory_fraction == 0.5F);
  // The device need not even know the type.
  Device device = half_device();
  device.peak.fill({});
  CHECK(cost_of(kernel, device).work == 30us);
}

TEST_CASE("types are as fast as the device says", "[model][kernel_cost]") {
  Device device = half_device();
  device.peak[static_cast<std::size_t>(DType::bf16)] = teraflops_per_second(327.68);
  device.gemm_efficiency[static_cast<std::size_t>(DType::bf16)] = 0.25;
  Kernel kernel = gemm(1280, 1280, 1000);
  kernel.type = DType::bf16;
  CHECK(cost_of(kernel, device).work == 40us + ramp);  // 81.92 instead of 16.384 TFLOP/s
}

TEST_CASE("a type the device lacks is refused by name", "[model][kernel_cost]") {
  Device device = half_device();
  device.peak[static_cast<std::size_t>(DType::fp16)] = {};
  Kernel kernel = gemm(128, 128, 128);
  kernel.type = DType::fp16;
  CHECK_THROWS_WITH(cost_of(kernel, device), Catch::Contains("round") && Catch::Contains("fp16"));
  CHECK_THROWS_AS(cost_of(kernel, device), std::invalid_argument);
}

TEST_CASE("a synchronous device has no ramp", "[model][kernel_cost]") {
  Device device = half_device();
  device.synchronous = true;
  CHECK(streaming_cost({1'000'000}, 4, device, 6us, Caller::library).work == 2us);
  CHECK(cost_of(gemm(1280, 1280, 1000), device).work == 200us);
  CHECK(cost_of(gemm(1280, 1280, 1000, {200'000'000}), device).work == 400us);
  CHECK(cost_of(gemm(1280, 1280, 1000), device).memory_fraction == 0);
}
