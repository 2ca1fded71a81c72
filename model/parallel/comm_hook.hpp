#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/parallel/comm_step.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What a bucket does instead of a plain all-reduce, by PyTorch's names.
enum class CommHookKind : std::uint8_t {
  none,  ///< no hook: DDP divides while it copies in, and sums
  allreduce,
  noop,
  fp16_compress,
  bf16_compress,
  powersgd,
  batched_powersgd,
  quantization_pertensor,
  quantization_perchannel,
  post_local_sgd,
  optimizer_overlap,
  zero_step,              ///< ZeRO, all buckets in the last one's hook
  zero_step_interleaved,  ///< ZeRO, each bucket once it is reduced
  steps,                  ///< the user's own list (CommHook::steps)
  plugin,                 ///< the user's own code
};
inline constexpr std::array all_comm_hooks{CommHookKind::none,
                                           CommHookKind::allreduce,
                                           CommHookKind::noop,
                                           CommHookKind::fp16_compress,
                                           CommHookKind::bf16_compress,
                                           CommHookKind::powersgd,
                                           CommHookKind::batched_powersgd,
                                           CommHookKind::quantization_pertensor,
                                           CommHookKind::quantization_perchannel,
                                           CommHookKind::post_local_sgd,
                                           CommHookKind::optimizer_overlap,
                                           CommHookKind::zero_step,
                                           CommHookKind::zero_step_interleaved,
                                           CommHookKind::steps,
                                           CommHookKind::plugin};
std::string_view name_of(CommHookKind kind);

constexpr bool is_zero_step(CommHookKind kind) {
  return kind == CommHookKind::zero_step || kind == CommHookKind::zero_step_interleaved;
}
/// Does the hook update its bucket's parameters, so that no optimizer follows the backward pass?
constexpr bool updates_parameters(CommHookKind kind) {
  return kind == CommHookKind::optimizer_overlap || is_zero_step(kind);
}

/// powerSGD_hook.py: PowerSGDState.
struct PowerSgd {
  int rank = 1;
  int start_iteration = 1000;  ///< so many synchronised iterations reduce plainly
  double min_compression_rate = 2;
  bool error_feedback = true;
  bool warm_start = true;
  double orthogonalization_epsilon = 0;
  std::uint32_t seed = 0;

  bool operator==(const PowerSgd&) const = default;
};

/// post_localSGD_hook.py, and the averaging of models beside it.
struct PostLocalSgd {
  int start_iteration = 100;       ///< so many iterations reduce over all ranks
  int subgroup = 0;                ///< ranks that go on reducing gradients; 0: those of a node
  bool gradient_allreduce = true;  ///< false: after the start, nobody reduces gradients
  int period = 4;                  ///< models are averaged every so many iterations

  int subgroup_of(int ranks_per_node) const { return subgroup > 0 ? subgroup : ranks_per_node; }

  bool operator==(const PostLocalSgd&) const = default;
};

/// One step of a comm hook the user writes as a list.
struct OwnStep {
  enum class Kind : std::uint8_t {
    cast,            ///< the bucket, from here on, in `type`
    scale,           ///< by `factor`; none: 1 / ranks
    topk,            ///< only the `share` of largest magnitude travel on, with their indices
    all_reduce,      ///< sums
    reduce_scatter,  ///< every rank has the sum of its part
    all_gather,      ///< parts come together; or, of what was not scattered, everyone's is summed
    broadcast,       ///< rank 0's
    kernel,          ///< costs what it costs, changes nothing
  };
  Kind kind = Kind::all_reduce;
  DType type = DType::fp32;
  std::optional<double> factor;
  double share = 1;
  std::string name;   ///< kernel
  double passes = 2;  ///< kernel: reads and writes of every element of the bucket, together
  int launches = 1;   ///< kernel
  /// Collectives: of which group of all ranks, each with a communicator of its own; DDP's is 0.
  int communicator = 0;
  bool operator==(const OwnStep&) const = default;
};
inline constexpr std::array all_own_steps{OwnStep::Kind::cast,           OwnStep::Kind::scale,
                                          OwnStep::Kind::topk,           OwnStep::Kind::all_reduce,
                                          OwnStep::Kind::reduce_scatter, OwnStep::Kind::all_gather,
                                          OwnStep::Kind::broadcast,      OwnStep::Kind::kernel};
std::string_view name_of(OwnStep::Kind kind);

/// A comm hook with its settings, as a scenario gives it.
struct CommHook {
  CommHookKind kind = CommHookKind::none;
  /// 16-bit types the bucket is cast to around the hook (fp16_compress_wrapper), outermost first.
  std::vector<DType> wrappers;
  PowerSgd powersgd;
  PostLocalSgd post_local_sgd;
  std::vector<OwnStep> steps;
  std::string plugin;               ///< its name in the library
  DType plugin_type = DType::fp32;  ///< of its payload: as many elements as the bucket has

  bool operator==(const CommHook&) const = default;
  explicit operator bool() const { return kind != CommHookKind::none || !wrappers.empty(); }
};

/// Every setting of the hook, in words: equal for hooks that keep the same state from step to step.
std::string state_of(const CommHook& hook);

/// "fp16_compress", "powersgd rank 4", "fp16_compress_wrapper(powersgd rank 1)"
std::string label(const CommHook& hook);

/// A bucket as a comm hook sees it.
struct CommBucket {
  std::vector<MatrixShape> gradients;  ///< in the order they lie in the bucket
  DType type = DType::fp32;
  std::int64_t elements() const;
};
MatrixShape matrix_of(const std::vector<std::int64_t>& shape);

/// PowerSGD's rank for a matrix, or 0: it is not compressed.
/// Source: pytorch powerSGD_hook.py _should_compress (rule R40).
int powersgd_rank(const PowerSgd& state, MatrixShape matrix);

/// The gradients of a bucket that PowerSGD compresses, in the order in which their P and Q lie, are
/// drawn and multiplied: of equal shapes one after the other, shapes as they first come. Source:
/// powerSGD_hook.py shape_to_tensors.
std::vector<LowRank> low_rank_gradients(const PowerSgd& state,
                                        std::span<const MatrixShape> gradients);

/// The matrices a hook compresses in a bucket, in the order their P and Q lie in memory: those
/// above, or of batched PowerSGD the whole bucket, padded to a square.
std::vector<LowRank> low_rank_matrices(const CommHook& hook, const CommBucket& bucket);

/// What the hook does with a bucket in one iteration (counted from 1; 0: the steady state), in
/// order. Those before the first collective run where DDP calls the hook, those behind it once the
/// collective has ended; hooked_buckets.hpp says when ZeRO's do. `ranks_per_node`: the subgroup of
/// post_local_sgd where it names none.
/// Source: pytorch default_hooks.py, powerSGD_hook.py, quantization_hooks.py,
/// post_localSGD_hook.py, optimizer_overlap_hooks.py, ddp_zero_hook.py; rules R39-R45.
std::vector<CommStep> comm_steps(const CommHook& hook, const CommBucket& bucket, int ranks,
                                 int ranks_per_node, bool synchronous, int iteration);

/// Does the hook's result lie in the bucket itself? (If not, gradients that are views of it take a
/// copy.)
bool result_in_bucket(const CommHook& hook);

/// A row of `ddpsim list hooks`.
struct CommHookFacts {
  CommHookKind kind;
  std::string_view payload;  ///< of one bucket: N elements of e bytes, W ranks
  std::string_view collectives;
  std::string_view source;
};
std::span<const CommHookFacts> comm_hook_facts();

}  // namespace ddpsim
