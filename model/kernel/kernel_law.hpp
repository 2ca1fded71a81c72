// The laws of single kernels of a GPU, a file for each class of operation: products, convolutions,
// attention, norms, reductions, and what streams through memory.
//
// Each has the form of what bounds the kernel (tiles that fill waves of multiprocessors, operands
// that each multiprocessor takes from the second-level cache, passes over memory, one block for
// each channel) and constants measured on one H200 (tests/data/h200): from single operations beside
// the laws, from the kernels of whole steps in step_constants.hpp. machine.hpp scales them to other
// devices by their data sheets. tools/accuracy prints how far each class is off, and how far steps
// of a network are that had no part in any constant.
#pragma once

#include "model/cluster/cluster.hpp"
#include "model/workload/device_kernel.hpp"

namespace ddpsim {

/// Where the time of a kernel comes from.
enum class KernelSource : std::uint8_t {
  law,       ///< of its class
  measured,  ///< a row of the device's table of operations
  between,   ///< two rows of it
  beyond,    ///< the nearest row of it, and the law for the rest of the way
};
constexpr std::string_view name_of(KernelSource source) {
  constexpr std::array<std::string_view, 4> names{"law", "measured", "between", "beyond"};
  return names[static_cast<std::size_t>(source)];
}

struct KernelTime {
  Duration busy{};  ///< of all launches; gaps between them not counted
  int launches = 1;
  float memory_fraction = 1;  ///< how much of it memory bandwidth bounds
  KernelSource source = KernelSource::law;
};

/// How long the kernel keeps a GPU busy that has nothing else to do: by the device's table of
/// measured operations (operation_table.hpp), and by the law of its class where that does not know
/// it.
/// Throws std::invalid_argument if the device does not multiply the kernel's format, and of a
/// device whose kernels run on the host thread.
KernelTime kernel_time(const DeviceKernel& kernel, const Device& device);

/// The time of a kernel by the law of its class alone, without measured operations.
KernelTime law_time(const DeviceKernel& kernel, const Device& device);

/// From the end of a kernel to the start of the next that the host has enqueued by then. Measured
/// between kernels of whole steps on an H200: 1.3 to 2.6 us a kernel, with the first launch and the
/// last synchronisation of a pass in it (tests/data/h200/steps.json and kernels.csv.gz).
inline constexpr Duration kernel_gap = std::chrono::nanoseconds{1300};

/// Which of PyTorch's fused kernels attention takes by itself: cuDNN's for 16-bit numbers on
/// devices of compute capability 9.0 and 10.0, with PyTorch 2.11 and later, whose cuDNN is new
/// enough (pytorch pull requests 162073 and 170800); else flash for 16-bit numbers without a mask
/// from 8.0 on; else the memory-efficient one. `release`: 211 is 2.11.
AttentionKernel attention_kernel(const AttentionOperation& operation, DType type,
                                 const Device& device, int release);

// The classes, for kernel_time alone.

/// A count, for arithmetic in doubles.
constexpr double real(std::int64_t count) {
  return static_cast<double>(count);
}

struct Machine;
KernelTime product_time(const Product& product, DType type, Bytes traffic, const Machine& machine);
KernelTime convolution_time(const ConvolutionShape& shape, DType type, Bytes traffic,
                            const Machine& machine);
KernelTime attention_time(const AttentionOperation& operation, DType type, Bytes traffic,
                          const Machine& machine);
/// The time of a kernel that moves memory. `launches`: of the kernel; where the law describes a
/// single launch, each further launch adds the floor.
KernelTime pattern_time(const MemoryPattern& pattern, DType type, Bytes traffic, int launches,
                        const Machine& machine);

}  // namespace ddpsim
