#pragma once

#include <string>

#include "model/base/quantity.hpp"
#include "model/workload/workload.hpp"
#include "sim/tune/tune.hpp"

namespace ddpsim {

/// The roundest cap between two: 25 MiB if it is among them, else as few decimals of a MiB as will
/// do, and of those the roundest number. In bytes as `int(mb * 1024 * 1024)` yields them.
struct RoundCap {
  std::string mib;  ///< "25", "0.125"
  Bytes bytes;
};
RoundCap round_cap(Bytes low, Bytes high);

/// What to write into a training script for the recommended buckets, one setting a paragraph, each
/// with the versions it works from. Sources: pytorch distributed.py and PRs 62748 and 121640; the
/// Horovod documentation, "Tensor Fusion"; the DeepSpeed documentation, "reduce_bucket_size" (in
/// elements). DDP's lines hold under torch's bucket rule alone; where `training` has the other,
/// they are left out.
std::string settings_to_paste(const Tuning& tuning, const Training& training,
                              const Workload& workload);

/// `buckets:` of a scenario, under `training:`.
std::string buckets_yaml(const Buckets& buckets, const Workload& workload);

}  // namespace ddpsim
