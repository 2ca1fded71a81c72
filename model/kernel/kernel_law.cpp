#include "model/kernel/kernel_law.hpp"

#include <algorithm>

#include "model/kernel/machine.hpp"
#include "model/kernel/operation_table.hpp"

namespace ddpsim {

KernelTime law_time(const DeviceKernel& kernel, const Device& device) {
  const Machine machine = machine_of(device);
  struct Law {
    const DeviceKernel& kernel;
    const Machine& machine;
    KernelTime operator()(const MemoryPattern& pattern) const {
      return pattern_time(pattern, kernel.type, kernel.traffic, kernel.launches, machine);
    }
    KernelTime operator()(const Product& product) const {
      return product_time(product, kernel.type, kernel.traffic, machine);
    }
    KernelTime operator()(const ConvolutionShape& shape) const {
      return convolution_time(shape, kernel.type, kernel.traffic, machine);
    }
    KernelTime operator()(const AttentionOperation& operation) const {
      return attention_time(operation, kernel.type, kernel.traffic, machine);
    }
  };
  KernelTime time = std::visit(Law{kernel, machine}, kernel.shape);
  // A kernel that a library launches in pieces.
  if (!std::holds_alternative<MemoryPattern>(kernel.shape) && kernel.launches > 1) {
    time.launches += kernel.launches - 1;
    time.busy += from_seconds((kernel.launches - 1) * floor_of(machine));
  }
  return time;
}

KernelTime kernel_time(const DeviceKernel& kernel, const Device& device) {
  KernelTime time = law_time(kernel, device);
  if (!device.operations) return time;
  const auto found = device.operations->find(kernel, time.busy, device);
  if (!found) return time;
  // A row holds the gaps between the kernels of its operation.
  const Duration gaps = (time.launches - 1) * kernel_gap;
  time.busy = std::max(found->time - gaps, found->time / 2);
  time.source = found->source;
  return time;
}

}  // namespace ddpsim
