#pragma once

#include <array>
#include <cstddef>

#include "model/cost/nccl_law.hpp"

namespace ddpsim {

/// Which algorithm NCCL's tuner takes for an all-reduce, by its size.
///
/// NCCL ranks by estimates of its own (nccl_law.hpp), and so takes an NVLS tree where a tree would
/// be quicker, and the other way round. Asked are its estimates for links as sold: NVLink, PCIe and
/// NICs of the device's generation. So the choice depends on what is wired to what and on the size,
/// and not on how fast a link is; a price by it neither jumps nor grows with bandwidth. What the
/// choice then costs is PortLaw's.
class NcclChoice {
 public:
  /// Nothing is chosen: any algorithm may run, at any size.
  NcclChoice() = default;
  explicit NcclChoice(const Cluster& cluster);

  /// From `from` bytes on `algorithm` runs, up to the next entry's.
  struct Range {
    double from = 0;
    NcclAlgorithm algorithm = NcclAlgorithm::ring;
  };
  static constexpr std::size_t most_ranges = 8;
  std::array<Range, most_ranges> ranges{};  ///< the first `count`, by size
  std::size_t count = 0;
};

}  // namespace ddpsim
