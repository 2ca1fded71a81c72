#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/workload/kernel_bindings.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// A piece of one of the two stores a rank's gradients live in.
struct Place {
  bool in_buckets = false;  ///< in the store of buckets; else in that of gradients
  std::int64_t offset = 0;  ///< bytes from its beginning
};

/// Where the gradients and buckets of a schedule are.
///
/// A bucket of DistributedDataParallel, or one that is filled by copies, has storage of its own;
/// where gradients are not both copied in and copied back, it holds them themselves
/// (gradient_as_bucket_view). Any other is the gradient of its one parameter.
struct Placement {
  std::vector<Place> gradients;  ///< [parameter]
  std::vector<Place> slices;     ///< [parameter] its part of its bucket, where it is in one
  std::vector<Place> buckets;    ///< [bucket]
};

/// Bytes from the beginning of the store of gradients to each parameter's, and, last, to its end.
/// Each begins at a multiple of `alignment` bytes.
std::vector<std::int64_t> gradient_offsets(const Workload& workload, std::int64_t alignment);

/// `offsets`: what gradient_offsets gave. The store of buckets takes at most
/// Workload::gradient_size().
Placement place(const Schedule& schedule, const Workload& workload,
                const std::vector<std::int64_t>& offsets);

}  // namespace ddpsim
