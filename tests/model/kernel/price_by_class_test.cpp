#include "model/kernel/price_by_class.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "model/kernel/host_law.hpp"
#include "model/kernel/operation_table.hpp"
#include "tests/model/workload/timed.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace price_by_class_test {
namespace {

Device device_with_laws() {
  Device device = timed::round_device();
  device.compute_capability = 80;
  device.peak.fill(teraflops_per_second(100));
  device.gemm_efficiency.fill(0.5);
  return device;
}

KernelPart moving(Bytes traffic, Duration host, int multiprocessors = 0) {
  KernelPart part;
  part.kernel.shape = MemoryPattern{};
  part.kernel.traffic = traffic;
  part.host = host;
  part.multiprocessors = multiprocessors;
  return part;
}

Workload with(std::vector<KernelPart> parts) {
  Kernel kernel;
  kernel.traffic = {8};
  kernel.parts = std::move(parts);
  Workload workload;
  workload.layers.push_back({"layer", {kernel}, {}});
  return workload;
}

const Kernel& priced(Workload& workload, const Device& device) {
  price_by_class(workload, device);
  return workload.layers[0].forward[0];
}

TEST_CASE("a kernel is known to reduce rows before and after its parts are priced",
          "[model][price_by_class]") {
  const Device device = device_with_laws();
  const KernelPart elementwise = moving({1000}, 8us);
  KernelPart softmax = elementwise;
  softmax.kernel.shape = MemoryPattern{.of = PatternKind::softmax, .rows = 10, .columns = 10};
  Workload plain = with({elementwise}), reduced = with({elementwise, softmax});
  CHECK_FALSE(reduces_rows(plain.layers[0].forward[0]));
  CHECK(reduces_rows(reduced.layers[0].forward[0]));
  CHECK_FALSE(reduces_rows(priced(plain, device)));
  CHECK(reduces_rows(priced(reduced, device)));
  CHECK(reduced.layers[0].forward[0].parts.empty());
}

TEST_CASE("a kernel costs the sum of its parts", "[model][price_by_class]") {
  const Device device = device_with_laws();
  const KernelPart large = moving({1'000'000'000}, 8us), small = moving({4}, 16us);
  Workload workload = with({large, small});
  const Kernel& kernel = priced(workload, device);
  REQUIRE(kernel.by_class);
  const Duration busy =
      kernel_time(large.kernel, device).busy + kernel_time(small.kernel, device).busy;
  CHECK(kernel.by_class->work == busy + 2 * kernel_gap);
  CHECK(kernel.by_class->host == host_in_step(24us));
  CHECK(kernel.by_class->memory_fraction > 0.9F);
  CHECK(kernel.launches == 2);
}

TEST_CASE("a device with fewer multiprocessors leaves a part out", "[model][price_by_class]") {
  Device device = device_with_laws();
  device.multiprocessors = 100;
  Workload workload = with({moving({4}, 8us), moving({4}, 16us, 101)});
  const Kernel& kernel = priced(workload, device);
  CHECK(kernel.by_class->host == host_in_step(8us));
  CHECK(kernel.launches == 1);
}

TEST_CASE("a device of an earlier generation leaves a part out", "[model][price_by_class]") {
  // Many multiprocessors make no Hopper of an Ada, nor does a later number of a GeForce.
  Device device = device_with_laws();
  device.multiprocessors = 142;
  KernelPart helper = moving({4}, 0us);
  helper.capability = 90;
  for (const auto& [capability, launches] : {std::pair{89, 1}, {90, 2}, {100, 2}, {120, 1}}) {
    device.compute_capability = capability;
    Workload workload = with({moving({4}, 8us), helper});
    CHECK(priced(workload, device).launches == launches);
  }
}

TEST_CASE("attention takes the kernel of the device and the release", "[model][price_by_class]") {
  Device device = device_with_laws();
  device.compute_capability = 90;
  KernelPart part;
  part.kernel.shape = AttentionOperation{
      {.batch = 1, .heads = 8, .queries = 512, .keys = 512, .size = 64, .causal = true}};
  part.kernel.type = DType::bf16;
  // cuDNN's has a memset before it; flash, of earlier releases, has none.
  CHECK(part_time(part, device, 213)->launches == 2);
  CHECK(part_time(part, device, 206)->launches == 1);
}

TEST_CASE("what is measured, and what a host thread runs, is left as it is",
          "[model][price_by_class]") {
  const Device device = device_with_laws();
  Workload timed = with({moving({4}, 8us)});
  timed.layers[0].forward[0].time = 7us;
  CHECK_FALSE(priced(timed, device).by_class);
  Workload unknown = with({});
  CHECK_FALSE(priced(unknown, device).by_class);
  Device cpu = device;
  cpu.synchronous = true;
  Workload on_cpu = with({moving({4}, 8us)});
  CHECK_FALSE(priced(on_cpu, cpu).by_class);
  CHECK_FALSE(has_laws(cpu));
}

TEST_CASE("a device's measured operations go before the laws", "[model][price_by_class]") {
  Device device = device_with_laws();
  const KernelPart part = moving({1'000'000}, 8us);
  const OperationRows rows = rows_of({{part.kernel, 123us}});
  device.operations =
      std::make_shared<OperationTable>([&rows]() -> const OperationRows& { return rows; });
  Workload workload = with({part});
  CHECK(priced(workload, device).by_class->work == 123us + kernel_gap);
}

TEST_CASE("attention is measured for each mask and direction apart", "[model][price_by_class]") {
  Device device = device_with_laws();
  std::vector<MeasuredOperation> measured;
  for (const bool causal : {false, true})
    for (const bool backward : {false, true})
      for (const bool masked : {false, true}) {
        AttentionOperation operation{
            {.batch = 1, .heads = 8, .queries = 512, .keys = 512, .size = 64, .causal = causal}};
        operation.shape.backward = backward;
        operation.masked = masked;
        DeviceKernel kernel;
        kernel.shape = operation;
        kernel.type = DType::bf16;
        measured.push_back({kernel, 100us + 1us * measured.size()});
      }
  const OperationRows rows = rows_of(measured);
  CHECK(rows.size() == measured.size());
  const OperationTable table([&rows]() -> const OperationRows& { return rows; });
  for (const MeasuredOperation& each : measured)
    CHECK(table.find(each.kernel, 50us, device)->time == each.time);
}

}  // namespace
}  // namespace price_by_class_test
