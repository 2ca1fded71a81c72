#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/parallel/bucketing.hpp"
#include "model/parallel/comm_hook.hpp"
#include "model/parallel/fsdp_variant.hpp"
#include "model/parallel/strategy.hpp"
#include "model/parallel/user_hook.hpp"
#include "model/parallel/zero_settings.hpp"

namespace ddpsim {

/// Releases of PyTorch, each with what holds from it on to the next.
enum class PyTorch : std::uint8_t {
  v1_13,  ///< the first bucket's cap is always 1 MiB; zero_grad keeps gradients, with their views
  v2_0,   ///< zero_grad drops gradients
  v2_13,  ///< from about 2.5: a cap the user gives holds for the first bucket too
};
inline constexpr std::array all_pytorches{PyTorch::v1_13, PyTorch::v2_0, PyTorch::v2_13};
constexpr std::string_view name_of(PyTorch release) {
  constexpr std::array<std::string_view, all_pytorches.size()> names{"1.13", "2.0", "2.13"};
  return names[static_cast<std::size_t>(release)];
}

/// Who makes a mean of the sum of gradients.
enum class Average : std::uint8_t {
  divide,      ///< kernels beside the all-reduces, as DistributedDataParallel has them
  all_reduce,  ///< the all-reduces themselves, as NCCL's ReduceOp.AVG does
};
inline constexpr std::array all_averages{Average::divide, Average::all_reduce};
constexpr std::string_view name_of(Average average) {
  return average == Average::divide ? "divide" : "all_reduce";
}

/// Where batches come from.
enum class Input : std::uint8_t {
  ready,    ///< they are there when a step begins: synthetic, cached, or tokens
  decoded,  ///< hosts decode and augment them while GPUs compute, at a pace that nobody said
};
inline constexpr std::array all_inputs{Input::ready, Input::decoded};
constexpr std::string_view name_of(Input input) {
  return input == Input::ready ? "ready" : "decoded";
}

/// What making batches costs the cores of a node, ahead of the steps that take them.
struct InputPipeline {
  Duration batch{};  ///< a core's time for one batch of one rank
  int cores = 1;     ///< of a node, for all of its ranks

  bool operator==(const InputPipeline&) const = default;
};

/// Uneven inputs: DDP's forward within `join()`, as a rank that still has inputs runs it.
struct Join {
  bool throw_on_early_termination = false;
  /// true: gradients are divided by the number of all ranks; false: by the number of ranks that
  /// still have inputs, which the host reads at the first gradient.
  bool divide_by_initial_world_size = true;
  /// How many ranks, the last ones, have run out of inputs: they send zeros in every collective of
  /// the others. That costs a step nothing, so only real runs look at it.
  int joined_ranks = 0;

  bool operator==(const Join&) const = default;
};

/// Parameters that DDP does not reduce, but a hook on another parameter: their gradients lie in one
/// buffer, which it divides and all-reduces, and nobody waits for that.
/// Source: torch distributed.py delay_all_reduce_named_params, param_to_hook_all_reduce (rule R50).
struct DelayedAllReduce {
  std::vector<std::int32_t> parameters;  ///< as they lie in the buffer
  std::int32_t hook = -1;                ///< the parameter whose gradient sends them
  bool contains(std::int32_t parameter) const {
    return std::find(parameters.begin(), parameters.end(), parameter) != parameters.end();
  }
};

/// How gradients travel together: `bucketed`.
struct BucketSettings {
  Bytes bucket_cap = default_bucket_cap;
  /// The cap of the first bucket; none: that of the others holds for it too.
  std::optional<Bytes> first_bucket_cap = default_first_bucket_cap;
  bool first_cap_given = false;    ///< by the user, whatever the release would make of it
  bool last_bucket_cap = false;    ///< DDP_SET_LAST_BUCKET_CAP: the special bucket is launched last
  std::vector<Bytes> bucket_caps;  ///< if given: a cap per bucket in order, the last one repeating
  /// If given: parameter indices of each bucket, in launch order.
  std::vector<std::vector<int>> buckets;
  int parameter_groups = 0;  ///< if positive: so many contiguous groups are the buckets
  BucketRule bucket_rule = BucketRule::torch;

  std::vector<Bytes> limits() const {
    if (!bucket_caps.empty()) return bucket_caps;
    if (first_bucket_cap) return {*first_bucket_cap, bucket_cap};
    return {bucket_cap};
  }

  /// Sets the rule, as a user of the library or a scenario does. A first bucket with a cap of its
  /// own is DDP's: buckets by the other rule have none unless it was asked for.
  void give_rule(BucketRule rule) {
    bucket_rule = rule;
    if (rule == BucketRule::before_overflow && !first_cap_given) first_bucket_cap.reset();
  }
};

/// What DistributedDataParallel has besides buckets: `bucketed`.
struct DdpSettings {
  bool find_unused_parameters = false;
  bool skip_all_reduce_unused_params = false;  ///< buckets that hold nothing else
  bool static_graph = false;
  bool gradient_as_bucket_view = false;
  /// The gradients of a bucket are copied into it by one kernel and divided by one kernel, once all
  /// are there.
  bool batched_grad_copy = false;
  /// Rank 0's buffers to all before each synchronised forward.
  bool broadcast_buffers = true;
  std::optional<Join> join;
  std::optional<DelayedAllReduce> delayed;  ///< with one micro-batch
  CommHook comm_hook;
};

/// Buckets of a wrapper of one's own in DistributedDataParallel's place: `bucketed`. At most one.
struct WrapperSettings {
  bool flattened_buckets = false, copied_buckets = false;
  bool own_buckets() const { return flattened_buckets || copied_buckets; }
};

/// Asynchronous all-reduces of one's own: `overlap`, and `bucketed` with WrapperSettings.
struct OverlapSettings {
  /// All results are waited for before anything is divided or copied back.
  bool wait_for_all = false;
};

/// `flat`.
struct FlatSettings {
  /// Gradients become views of the concatenated one, and nothing is copied back.
  bool flat_views = false;
};

/// MixedPrecisionPolicy of fully_shard.
struct MixedPrecision {
  /// Of gathers, of whole parameters and their gradients, and of what passes compute; none: the
  /// type that parameters are kept in.
  std::optional<DType> param_dtype;
  std::optional<DType> reduce_dtype;  ///< of reduce-scatters; none: that of whole gradients

  bool operator==(const MixedPrecision&) const = default;
};

/// What becomes of a unit's whole parameters behind its forward pass.
struct Reshard {
  bool frees = true;
  /// If so: so many ranks next to each other keep one of as many parts each for the backward pass;
  /// 0: all ranks that share the parameters, which keep their own parts.
  int ranks = 0;

  constexpr Reshard(bool frees_them = true) : frees(frees_them) {}  // NOLINT: a truth value is one
  static constexpr Reshard among(int ranks) {
    Reshard reshard;
    reshard.ranks = ranks;
    return reshard;
  }
  friend bool operator==(const Reshard&, const Reshard&) = default;
};

/// What a call of fully_shard, or setters of its module, say of one unit.
struct UnitSettings {
  std::optional<Reshard> reshard_after_forward;  ///< none: as all units
  bool unshard_in_backward = true;               ///< set_unshard_in_backward
  /// set_modules_to_forward_prefetch, set_modules_to_backward_prefetch: units, as indices into
  /// FsdpSettings::units. None: as the depths say.
  std::optional<std::vector<std::int32_t>> forward_prefetch, backward_prefetch;

  friend bool operator==(const UnitSettings&, const UnitSettings&) = default;
};

/// The micro-batches whose gradients replicas of shards all-reduce.
enum class AllReduced : std::uint8_t { every, last };
inline constexpr std::array all_all_reduced{AllReduced::every, AllReduced::last};
constexpr std::string_view name_of(AllReduced which) {
  return which == AllReduced::every ? "every" : "last";
}

/// CPUOffloadPolicy of fully_shard: parts of parameters, their gradients and the optimizer's state
/// are in pinned memory of the host, which updates them.
struct CpuOffload {
  Bandwidth copies;   ///< of one rank's, to its GPU or back
  Duration update{};  ///< the optimizer, on the host

  bool operator==(const CpuOffload&) const = default;
};

/// `fsdp`. Variant fsdp1 looks at `fsdp`, `units`, `replicate`, `mp_policy` and
/// `cuda_device_max_connections`; all others are fully_shard's.
struct FsdpSettings {
  FsdpVariantSettings fsdp;
  /// Parameters of each call of fully_shard but the root's, in the order of the modules. None: the
  /// blocks (policy/fsdp_units.hpp).
  std::vector<std::vector<std::int32_t>> units;
  /// [unit] Modules of the call. Empty: not known, and a unit's passes are those of its parameters.
  std::vector<std::vector<std::string>> unit_modules;
  /// [unit] Of some; empty: no unit has settings of its own.
  std::vector<UnitSettings> unit_settings;
  /// none: that of all units but the root's.
  std::optional<Reshard> reshard_after_forward;
  /// Each unit but the root's prefetches so many behind it, or before it in backward, explicitly;
  /// 0: none, and in backward the one before it, as fully_shard does by itself.
  int forward_prefetch = 0, backward_prefetch = 0;
  /// set_reshard_after_backward. If not, whole parameters stay until the next micro-batch's forward
  /// pass has ended; behind the last one they are always freed.
  bool reshard_after_backward = true;
  /// So many replicas of the shards, each on as many ranks next to each other (HSDP).
  int replicate = 1;
  /// set_requires_all_reduce: which micro-batches replicas all-reduce; those before the last are
  /// added up by each replica then.
  AllReduced requires_all_reduce = AllReduced::every;
  /// set_reduce_scatter_max_input_buffers
  int reduce_scatter_max_input_buffers = 1;
  /// set_separate_reduce_scatter_group
  bool separate_reduce_scatter_group = false;
  /// The queues of the device that its streams share, as CUDA has them: with one, tasks begin in
  /// the order of issue (program/one_queue.hpp); with more, each stream is taken to have its own.
  int cuda_device_max_connections = 8;
  MixedPrecision mp_policy;
  std::optional<CpuOffload> offload_policy;  ///< none: all is on the device
};

/// `zero1`, `zero2`, `zero3`: each with settings of its own.
struct AllZeroSettings {
  ZeroSettings zero1;
  ZeroSettings zero2{.variant = ZeroVariant::deepspeed};
  ZeroSettings zero3{.variant = ZeroVariant::deepspeed, .overlap_comm = true};
};

/// Under `none`, in place of a strategy that shards.
struct StandIn {
  bool updates_part = false;  ///< the optimizer updates this rank's part of parameters alone
  bool passes_cast = false;   ///< passes are those of `mp_policy`
};

/// How a step is trained: everything that shapes its job besides the workload and the cluster. A
/// strategy looks at what is common and at settings of its own (model/parallel/policy); those of
/// the others stay beside them, for a scenario compares, tunes and scores several with one
/// `training:`.
struct Training : BucketSettings,
                  DdpSettings,
                  WrapperSettings,
                  OverlapSettings,
                  FlatSettings,
                  FsdpSettings,
                  AllZeroSettings,
                  StandIn {
  Strategy strategy = Strategy::bucketed;
  PyTorch pytorch = PyTorch::v2_13;
  Input input = Input::ready;
  std::optional<InputPipeline> pipeline;  ///< none: batches hold up no step
  int micro_batches = 1;
  bool no_sync = false;  ///< only the last micro-batch communicates
  Average average = Average::divide;
  /// The user's, on gradients and layers; in the order they run on one gradient.
  std::vector<UserHook> hooks;
  /// Which iteration of the training, from 1; 0: the steady state. A step counts as one iteration,
  /// however many of its micro-batches communicate. See policy/iteration.hpp.
  int iteration = 0;

  /// Are passes those of parameters in `param_dtype` (Workload::cast)?
  bool casts_parameters() const {
    const bool casts = has_policy() || (strategy == Strategy::none && passes_cast);
    return casts && mp_policy.param_dtype;
  }
  /// Is DistributedDataParallel, or a wrapper in its place, what reduces gradients?
  bool wraps_buckets() const {
    if (zero() == nullptr) return strategy == Strategy::bucketed;
    return !has_policy() && !zero()->overlaps_each();
  }
  /// Does `mp_policy` hold for the strategy? DistributedDataParallel has none.
  bool has_policy() const {
    if (strategy == Strategy::fsdp) return true;
    const ZeroSettings* settings = zero();
    return settings != nullptr && settings->variant != ZeroVariant::torch &&
           settings->variant != ZeroVariant::course;
  }
  /// The settings of the strategy, if it is a ZeRO; else null.
  const ZeroSettings* zero() const {
    if (strategy == Strategy::zero1) return &zero1;
    if (strategy == Strategy::zero2) return &zero2;
    if (strategy == Strategy::zero3) return &zero3;
    return nullptr;
  }
  /// Is it FullyShardedDataParallel?
  bool is_fsdp1() const { return strategy == Strategy::fsdp && fsdp.variant == FsdpVariant::fsdp1; }
  /// Does a replica of fsdp add up what it reduce-scattered, until the last micro-batch?
  bool sums_before_all_reduce() const {
    return replicate > 1 && requires_all_reduce == AllReduced::last && micro_batches > 1 &&
           !no_sync;
  }
  /// Does the host run the optimizer?
  bool updates_on_host() const {
    return offload_policy && (strategy == Strategy::fsdp || updates_part);
  }
  /// Gradients travel in buckets, whatever the strategy was.
  Training in_buckets() const {
    Training bucketed = *this;
    bucketed.strategy = Strategy::bucketed;
    return bucketed;
  }
  /// As this, without communication: passes stay what they are.
  Training without_communication() const {
    Training alone = *this;
    alone.passes_cast = casts_parameters();
    alone.strategy = Strategy::none;
    return alone;
  }

  /// Without communication as a step is compared to say what it exposes: its optimizer updates as
  /// much, too.
  Training compared_with() const {
    Training alone = without_communication();
    alone.updates_part = shares_update(strategy);
    if (strategy != Strategy::fsdp) {
      alone.replicate = 1;
      alone.offload_policy.reset();
    }
    return alone;
  }

  /// What gradients are divided by when they are averaged over `ranks` ranks (a comm hook divides
  /// by all).
  int divisor(int ranks) const {
    const bool hooked = wraps_buckets() && comm_hook;
    const bool active = join && !join->divide_by_initial_world_size && !hooked;
    return active ? ranks - join->joined_ranks : ranks;
  }

  /// No step is shorter than its node takes to make its ranks' batches.
  Duration least_step(int ranks_per_node) const {
    if (!pipeline) return {};
    return pipeline->batch * (std::int64_t{micro_batches} * ranks_per_node) / pipeline->cores;
  }

  /// Sets the cap, as a user of DDP does with `bucket_cap_mb`.
  void give_cap(Bytes cap) {
    bucket_cap = cap;
    if (pytorch == PyTorch::v2_13 && !first_cap_given) first_bucket_cap.reset();
  }
};

}  // namespace ddpsim
