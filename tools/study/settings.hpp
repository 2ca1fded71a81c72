#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/parallel/training.hpp"
#include "model/workload/workload.hpp"
#include "sim/tune/round_cap.hpp"
#include "sim/tune/tune.hpp"

namespace ddpsim {

/// Has the scenario other buckets than those the advice is weighed against?
bool has_own_buckets(const Tuning& tuning);

/// Are the scenario's own buckets, other than those the advice is weighed against, as good as the
/// advised ones, noise aside?
bool keeps_given(const Tuning& tuning, const TuneOptions& options);

/// The buckets that a user of this scenario ends up with who takes the advice.
const Choice& settled(const Tuning& tuning, const TuneOptions& options);

/// Is `choice` shorter than what is settled with each combination of the errors allowed for? True
/// where none are.
bool gains_with_errors(const Tuning& tuning, const TuneOptions& options, const Choice& choice);

/// What to write into a training script for the recommended buckets, one setting a paragraph, each
/// with the versions it works from. Sources: pytorch distributed.py and PRs 62748 and 121640; the
/// Horovod documentation, "Tensor Fusion"; the DeepSpeed documentation, "reduce_bucket_size" (in
/// elements). DDP's lines are for its own buckets alone: where `training` has another rule, or a
/// wrapper of one's own, caps for those stand in their place.
std::string settings_to_paste(const Tuning& tuning, const TuneOptions& options,
                              const Training& training, const Workload& workload);

/// What PyTorch 2.13's DistributedDataParallel takes to make buckets; neither: its default, of 1
/// MiB and 25 MiB.
struct DdpArguments {
  std::optional<RoundCap> cap;  ///< bucket_cap_mb, which holds for the first bucket too
  std::vector<RoundCap> caps;   ///< bucket_cap_mb_list: a cap for each bucket, the last repeating
  Duration step{};              ///< with these buckets
};

/// The simplest arguments whose step is within 0.1 % of the shortest that arguments can make. Of
/// buckets that are recommended for more than their step (errors allowed for, memory) those alone.
/// Throws std::invalid_argument where `training` has another rule than torch's, by which DDP cannot
/// make buckets.
DdpArguments ddp_arguments(const Tuning& tuning, const TuneOptions& options,
                           const Training& training, const Workload& workload);

/// `buckets:` of a scenario, under `training:`.
std::string buckets_yaml(const Buckets& buckets, const Workload& workload);

}  // namespace ddpsim
