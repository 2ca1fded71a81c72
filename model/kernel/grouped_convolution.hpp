#pragma once

#include <cmath>

#include "model/kernel/machine.hpp"
#include "model/workload/device_kernel.hpp"

namespace ddpsim {

/// Seconds of a convolution of every channel by itself, were there no bytes to move. `type`: of its
/// numbers.
double by_channel_seconds(const ConvolutionShape& shape, DType type, const Machine& machine);

/// FLOP/s of a convolution in groups: in fp32 of any, on tensor cores of fewer than 32 channels.
double grouped_rate(const ConvolutionShape& shape, DType type, const Machine& machine);

/// `value` over the next multiple of `tile`: what of a tile is used.
inline double used_of_tile(double value, double tile) {
  return value / (std::ceil(value / tile) * tile);
}

}  // namespace ddpsim
