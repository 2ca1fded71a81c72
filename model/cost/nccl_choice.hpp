#pragma once

#include "model/cost/nccl_law.hpp"

namespace ddpsim {

/// The sizes of all-reduces for which NCCL's tuner takes an NVLS tree, where a tree of the LL128
/// protocol would be quicker: the one choice of its that costs much (nccl_law.hpp ranks by
/// estimates). Bytes; `from` >= `to`: none.
struct NvlsTreeSizes {
  double from = 0, to = 0;

  bool contain(double bytes) const { return bytes >= from && bytes < to; }
  bool operator==(const NvlsTreeSizes&) const = default;
};

/// As NCCL of the cluster's release would choose on links as sold: NVLink and NICs of the device's
/// generation. So the choice depends on what is wired to what, and not on how fast a link is: a
/// price by it neither jumps nor grows with bandwidth. Up to 512 MiB; beyond, bytes alone count.
NvlsTreeSizes nvls_tree_sizes(const Cluster& cluster);

}  // namespace ddpsim
