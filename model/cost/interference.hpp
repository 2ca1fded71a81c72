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
  float per_launch = 0;     ///< seconds by which each launch of a kernel comes later
};

/// Factor on a kernel of which memory bandwidth bounds `memory_fraction`, and which has
/// `launch_rate` launches for each second it takes.
inline float compute_slowdown(const Interference& beside, float memory_fraction,
                              float launch_rate = 0) {
  const float memory = 1 + memory_fraction * (beside.memory_bound - 1);
  const float longer = beside.compute_bound > memory ? beside.compute_bound : memory;
  return longer + launch_rate * beside.per_launch;
}

/// Do collectives of GPUs cross the memory of a host between GPUs of one node?
bool crosses_host(const Cluster& cluster);

/// Do collectives between nodes go over NICs? A network that does not say its kind has them too.
bool over_nics(const Cluster& cluster);

/// Interference of one collective with the kernels beside it, from the device and the link alone.
///
///     arithmetic-bound kernel   M / (M - c)          c of the M SMs hold NCCL's thread blocks
///     memory-bound kernel       1 / (1 - k B / H)    k B of the memory's H bytes/s go to NCCL
///     each launch               d later              while bytes cross the host's memory
///     collective                (latency + transfer / (1 - g)) / (latency + transfer)
///
/// k = 2.5: a collective moves each byte of link traffic two to three times through memory
/// (NVIDIA/nccl#1428). g = 0.5 over NVLink: the two public measurements of a collective beside
/// GEMMs, 107 -> 206 ms on eight V100 (parasailteam/coconet#6) and "up to 2x" with free SMs
/// (NVIDIA/nccl#1433), both halve its bandwidth; only the transfer suffers. g = 0.45 between GPUs
/// that copy to each other over PCIe, where d = 0: least squares over the overlapped rows of the
/// seven measured files with such GPUs, each source counting alike
/// (tests/experiments/fit_interference.cpp). Over NICs, to which the bytes go by PCIe, the same (no
/// public row tells), and over a network that does not say its kind. g = 0.02 and d = 30 us where
/// GPUs of one node reach each other through the host's memory: the memory or the bus is the
/// bottleneck there, not what the GPU does beside it, and kernels run as fast as ever but with
/// longer gaps. Both are the mean of four A40 (2.8 % and 43 us, the mean of nine published cells)
/// and four L4 (1 % and 18 us, of three): tests/data/beside_collectives.csv. That is a host of 6
/// GB/s on the bus. On hosts of 2.3 GB/s kernels of every kind advance at a quarter of their speed
/// meanwhile: of the all-reduces of four published steps 22 to 27 % hide, whether computing takes
/// 0.6 or 6 times as long (tests/data/through_host_steps.csv). Between the two the speed follows
/// the logarithm of the rate, and the gaps grow as the speed does. Between nodes the hops in a node
/// are the same (nobody measured it). A network may let bytes come slower than the host would move
/// them: the host is taken to move at least what hosts usually do (bus_through_host), and kernels
/// lose for the share of the time in which it does.
///
/// B is the bus bandwidth that is left, H the bandwidth streaming kernels reach. At most half of
/// the SMs are taken, and at least a fifth of the memory is left: bounds that no published case
/// reaches. On a CPU no SMs are taken.
/// A scenario's fixed factors go before all that, and then what a calibration measured: compute and
/// communication of the sizes beside this one, linear in log(size), and of the last beyond the
/// ends; a measured factor below 1 is noise, and 1.
/// Source: NVIDIA/nccl issues 1428 and 1433; github:kopernik278/nccl-network-benchmark@69fb1ef:
/// docs/experiments/p7b-overlap.md and p8-contention.md; arXiv 2507.03114 (compute 18.9 % slower on
/// average on H100 and A100; the first line gives 1.14 to 1.29 there).
class InterferenceLaw {
 public:
  static constexpr double lost_over_nvlink = 0.5, lost_over_pcie = 0.45,
                          lost_through_host = 0.02;            ///< g
  static constexpr double seconds_later_through_host = 30e-6;  ///< d
  /// Through the host's memory: what hosts move on the bus, bytes/s, and how fast kernels are
  /// beside that on the slow ones.
  static constexpr double slow_host = 2.3e9, fast_host = 6e9, speed_beside_slow_host = 0.25;

  explicit InterferenceLaw(const CalibratedCluster& cluster);

  /// Beside a collective of `size`.
  Interference beside(const CollectiveCost& collective, Bytes size) const;

  /// Do kernels start later beside collectives, by the law?
  bool delays_launches() const { return by_host_ && !fixed_ && measured_.empty(); }

  /// Every slowdown s becomes 1 + strength (s - 1). Calibration on an overlapped run moves it; 1
  /// otherwise.
  double strength = 1;

 private:
  int multiprocessors_;
  bool synchronous_;
  Bandwidth memory_;
  std::optional<FixedInterference> fixed_;
  double lost_;                                 ///< g
  bool by_host_;                                ///< through the memory of hosts
  double usual_host_;                           ///< the least that a host moves, bytes/s
  std::vector<MeasuredInterference> measured_;  ///< by size; empty: nothing was
};

}  // namespace ddpsim
