#pragma once

#include <optional>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/cost/collective.hpp"

namespace ddpsim {

/// How a collective and the kernels beside it slow each other; 1 is not at all.
struct Interference {
  float compute_bound = 1;  ///< factor on a kernel that arithmetic bounds
  float memory_bound = 1;   ///< factor on a kernel that memory bandwidth bounds
  float communication = 1;  ///< factor on the whole collective while any kernel runs
};

/// Factor on a kernel of which memory bandwidth bounds `memory_fraction`.
inline float compute_slowdown(const Interference& beside, float memory_fraction) {
  const float memory = 1 + memory_fraction * (beside.memory_bound - 1);
  return beside.compute_bound > memory ? beside.compute_bound : memory;
}

/// Interference of one collective with the kernels beside it, from the device and the link alone.
///
///     arithmetic-bound kernel   M / (M - c)          c of the M SMs hold NCCL's thread blocks
///     memory-bound kernel       1 / (1 - k B / H)    k B of the memory's H bytes/s go to NCCL
///     collective                (latency + transfer / (1 - g)) / (latency + transfer)
///
/// k = 2.5: a collective moves each byte of link traffic two to three times through memory
/// (NVIDIA/nccl#1428). g = 0.5 over NVLink: the two public measurements of a collective beside
/// GEMMs, 107 -> 206 ms on eight V100 (parasailteam/coconet#6) and "up to 2x" with free SMs
/// (NVIDIA/nccl#1433), both halve its bandwidth; only the transfer suffers. g = 0.4 over PCIe: a
/// channel can copy faster than the bus takes it, so less is lost; fitted on the overlapped rows of
/// the eight development files with PCIe, whose strengths are then 1 in the mean. Over NICs, to
/// which the bytes go by PCIe, the same: no public row tells. B is the bus bandwidth that is left,
/// H the bandwidth streaming kernels reach. At most half of the SMs are taken, and at least a fifth
/// of the memory is left: bounds that no published case reaches. On a CPU no SMs are taken.
/// A scenario's fixed factors go before all that, and then what a calibration measured: compute and
/// communication of the sizes beside this one, linear in log(size), and of the last beyond the
/// ends; a measured factor below 1 is noise, and 1.
/// Source: NVIDIA/nccl issues 1428 and 1433; arXiv 2507.03114 (compute 18.9 % slower on average on
/// H100 and A100; the first line gives 1.14 to 1.29 there).
class InterferenceLaw {
 public:
  explicit InterferenceLaw(const CalibratedCluster& cluster);

  /// Beside a collective of `size`.
  Interference beside(const CollectiveCost& collective, Bytes size) const;

  /// Every slowdown s becomes 1 + strength (s - 1). Calibration on an overlapped run moves it; 1
  /// otherwise.
  double strength = 1;

 private:
  int multiprocessors_;
  bool synchronous_;
  Bandwidth memory_;
  std::optional<FixedInterference> fixed_;
  double lost_;                                 ///< g
  std::vector<MeasuredInterference> measured_;  ///< by size; empty: nothing was
};

}  // namespace ddpsim
