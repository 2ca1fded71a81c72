// Attention in fused kernels.
//
//     t = t0 + FLOPs of the scores that are computed / (R (size / 64)^e)
//
// Scores are computed in tiles; a causal mask leaves half of them and one tile of keys for each
// query. Forward has 4 operations for each score and element of a head, backward 10.
//
// PyTorch's memory-efficient kernels emulate fp32 by three products in TF32, whatever TF32 is set
// to, so that they reach about a third of its rate.
//
// Constants: attention by each implementation on one H200 (tests/data/h200), backward passes from
// the kernels of whole steps; a cap for long sequences from cuDNN's own benchmark on H200
// (github:NVIDIA/cudnn-frontend, benchmark results of 2026).
// The starts of the backward kernels of flash and of the memory-efficient kernel in 16 bits are
// assumed: short rows of theirs measure the host.
#include <algorithm>
#include <cmath>
#include <limits>

#include "model/kernel/kernel_law.hpp"
#include "model/kernel/machine.hpp"
#include "model/kernel/product_law.hpp"

namespace ddpsim {
namespace {

struct AttentionRates {
  double query_tile, key_tile;
  double start;    ///< seconds
  double rate;     ///< FLOP/s at heads of 64, of the H200
  double by_size;  ///< e
  double most;     ///< FLOP/s that no head exceeds
};

constexpr double none = std::numeric_limits<double>::infinity();

AttentionRates rates_of(AttentionKernel kernel, bool backward, bool narrow,
                        const StepConstants& c) {
  switch (kernel) {
    case AttentionKernel::cudnn:
      return backward ? AttentionRates{128,    128, 1e-6 * c.attention_backward_start_us,
                                       409e12, 0.5, 610e12}
                      : AttentionRates{64, 64, 13.3e-6, 425e12, 0.5, 700e12};
    case AttentionKernel::usual:
    case AttentionKernel::flash:
      return backward ? AttentionRates{64, 64, 20e-6, 218e12, 0, none}
                      : AttentionRates{128, 128, 8.3e-6, 260e12, 0.33, none};
    case AttentionKernel::efficient:
      if (narrow)
        return backward ? AttentionRates{64, 64, 30e-6, 89e12, 0.4, none}
                        : AttentionRates{128, 128, 9.3e-6, 124e12, 0.5, none};
      return backward
                 ? AttentionRates{64, 64, 5.3e-6, 1e12 * c.efficient_backward_tflops, 0.14, none}
                 : AttentionRates{64, 64, 5.3e-6, 31.4e12, 0.5, none};
  }
  return {};
}

double padded(std::int64_t extent, double tile) {
  return std::ceil(static_cast<double>(extent) / tile) * tile;
}

/// Sums of result times gradient by rows, and the queries' gradient from its sum in fp32.
double around_gradient(double elements, const Machine& machine) {
  return seconds_of(4 * elements, machine.constants.attention_sums_rate, machine) +
         seconds_of(6 * elements, machine.constants.attention_copy_rate, machine);
}

/// Rates of 16 bits follow the tensor cores; the emulation of fp32 the rate in TF32.
double scale_of(bool narrow, DType type, const Machine& machine) {
  constexpr double reference_16 = 989.4e12 * 0.80, reference_tf32 = 494.7e12 * 0.82;
  if (narrow) return rate_of_products(type, machine) / reference_16;
  const double tf32 = machine.rate_of(DType::tf32);
  // Without TF32 the multiprocessors' lanes multiply.
  return tf32 > 0 ? tf32 / reference_tf32
                  : std::min(1.0, rate_of_products(DType::fp32, machine) / 31.4e12);
}

}  // namespace

AttentionKernel attention_kernel(const AttentionOperation& operation, DType type,
                                 const Device& device, int release) {
  if (operation.implementation != AttentionKernel::usual) return operation.implementation;
  const bool narrow = size_of(type) < size_of(DType::fp32);
  if (!narrow) return AttentionKernel::efficient;
  constexpr int first_with_new_cudnn = 211;
  const bool cudnn_first = device.compute_capability == 90 || device.compute_capability == 100 ||
                           device.compute_capability == 103;
  const Attention& shape = operation.shape;
  const std::int64_t widest = device.compute_capability == 90 ? 256 : 128;
  const std::int64_t value_size = shape.value_size == 0 ? shape.size : shape.value_size;
  const bool fits =
      shape.size % 8 == 0 && value_size % 8 == 0 && shape.size <= widest && value_size <= widest;
  if (cudnn_first && release >= first_with_new_cudnn && fits) return AttentionKernel::cudnn;
  constexpr int first_with_flash = 80;
  if (!operation.masked && device.compute_capability >= first_with_flash)
    return AttentionKernel::flash;
  return AttentionKernel::efficient;
}

KernelTime attention_time(const AttentionOperation& operation, DType type, Bytes traffic,
                          const Machine& machine) {
  const Attention& shape = operation.shape;
  const bool narrow = size_of(type) < size_of(DType::fp32);
  const AttentionKernel kernel = operation.implementation;
  const AttentionRates rates = rates_of(kernel, shape.backward, narrow, machine.constants);
  const double queries = padded(shape.queries, rates.query_tile);
  const double keys = padded(shape.keys, rates.key_tile);
  const double seen = shape.causal ? std::min(1.0, 0.5 + rates.key_tile / keys) : 1;
  const double size = static_cast<double>(shape.size);
  const double value_size = shape.value_size == 0 ? size : static_cast<double>(shape.value_size);
  const double heads = static_cast<double>(shape.batch) * static_cast<double>(shape.heads);
  const double scores = heads * queries * keys * seen;
  // Products over queries' and keys' elements, and over values'.
  const double flops =
      scores * (shape.backward ? 6 * size + 4 * value_size : 2 * size + 2 * value_size);
  const double rate = std::min(rates.most, rates.rate * std::pow(size / 64, rates.by_size)) *
                      scale_of(narrow, type, machine);
  const double memory = seconds_of(static_cast<double>(traffic.count), 4.2, machine);
  double seconds = rates.start / machine.clock + std::max(flops / rate, memory);
  KernelTime time;
  if (kernel == AttentionKernel::cudnn) {
    // A memset before; backward sums of result times gradient by rows, and the queries' gradient
    // from its sum in fp32.
    seconds += 0.8e-6;
    time.launches = 2;
    if (shape.backward) {
      const double elements = heads * static_cast<double>(shape.queries) * size;
      seconds += around_gradient(elements, machine);
      time.launches = 4;
    }
  } else if (kernel == AttentionKernel::flash && shape.backward) {
    const double elements = heads * static_cast<double>(shape.queries) * size;
    seconds += around_gradient(elements, machine);
    time.launches = 3;
  }
  time.busy = from_seconds(seconds);
  time.memory_fraction = static_cast<float>(std::min(1.0, memory / seconds));
  return time;
}

}  // namespace ddpsim
