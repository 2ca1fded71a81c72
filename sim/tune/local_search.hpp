#pragma once

#include <functional>
#include <vector>

#include "sim/tune/bucket_steps.hpp"
#include "sim/tune/partition.hpp"

namespace ddpsim {

/// The best of `starts` (ends of contiguous buckets) after moving, removing and adding borders as
/// long as the simulated step gets shorter: no longer than it has reached `bound`, nor than
/// `budget` steps. Only partitions that `fits` count. A local search: it proves nothing, the bound
/// does.
Partition local_search(BucketSteps& steps, const std::vector<std::vector<int>>& starts,
                       Duration bound, std::uint64_t budget,
                       const std::function<bool(const std::vector<int>&)>& fits);

}  // namespace ddpsim
