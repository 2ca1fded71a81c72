#pragma once

#include "model/cluster/cluster.hpp"
#include "model/kernel/step_constants.hpp"

namespace ddpsim {

inline constexpr double reference_clock = 1.98e9;  ///< Hz of the H200

/// A device as the laws of kernels see it: what they take from its data sheet, and by how much it
/// differs from the H200 that their constants were measured on.
struct Machine {
  double multiprocessors = 132;
  double clock = 1;           ///< over the H200's 1.98 GHz; what takes cycles takes 1 / clock
  double lanes = 1;           ///< multiprocessors x clock, over the H200's
  double bandwidth = 1;       ///< that streaming kernels reach, over the H200's
  double cache_bytes = 50e6;  ///< of the second level
  int compute_capability = 90;
  std::array<double, all_dtypes.size()> product_rate{};  ///< [dtype], FLOP/s of large products
  StepConstants constants;

  double hertz() const { return clock * reference_clock; }
  double rate_of(DType type) const { return product_rate[static_cast<std::size_t>(type)]; }
  bool has_cudnn() const { return compute_capability > 0; }  ///< 0: not CUDA's
  /// Does the device have Hopper's products of warp groups, which read operands of 32 bits from
  /// shared memory along k alone (NVIDIA, PTX ISA, wgmma)?
  bool has_warp_group_products() const { return compute_capability == 90; }
};

/// The clock is what makes the peak in fp32 of two operations in each of 64 lanes (compute
/// capability 7.0, 7.5 and 8.0, and devices that are not CUDA's) or 128 (6.1, 8.6 and later).
Machine machine_of(const Device& device);

/// Seconds that `bytes` take on this machine, at a rate that was measured on the H200, in TB/s.
double seconds_of(double bytes, double terabytes_per_second, const Machine& machine);

/// How long the device is busy with a kernel that does next to nothing: with its first launch, and
/// with its last. Seconds.
double floor_of(const Machine& machine);

}  // namespace ddpsim
