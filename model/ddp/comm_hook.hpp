#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule/operation.hpp"
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

/// "fp16_compress", "powersgd rank 4", "fp16_compress_wrapper(powersgd rank 1)"
std::string label(const CommHook& hook);

/// What one task of a comm hook does to its bucket's data; what it costs is its Operation's matter.
/// "The data" is the bucket, or, after `narrow`, its copy in the other type.
enum class CommAction : std::uint8_t {
  divide,  ///< data /= ranks
  narrow,  ///< data = the bucket, in `type`
  widen,   ///< the bucket = data; from here on the data is the bucket
  scale,   ///< data *= factor
  reduce,  ///< data = sum over ranks
  // PowerSGD; `tensor` is one of the bucket's gradients, a matrix M of n x m
  pad,              ///< batched: data = bucket and zeros, s x s
  add_error,        ///< data += error
  keep_input,       ///< input = data
  pack,             ///< small = the gradients that are not compressed
  draw_q,           ///< Q = random, the same on all ranks
  orthogonalize_q,  ///< columns of Q
  project,          ///< P = M Q
  reduce_small,     ///< small = sum over ranks
  unpack,           ///< the gradients that are not compressed = small / ranks
  reduce_p,         ///< P = sum over ranks
  orthogonalize_p,  ///< columns of P
  back_project,     ///< Q = M^T P
  reduce_q,         ///< Q = sum over ranks
  divide_q,         ///< Q /= ranks
  reconstruct,      ///< M = P Q^T
  keep_error,       ///< error = input - data
  unpad,            ///< batched: bucket = data
  // Quantisation
  observe,        ///< scale and zero point of the data, or of each channel of 512
  gather_scales,  ///< everyone's
  quantize,       ///< codes = data in 8 bit
  gather_codes,   ///< everyone's
  dequantize,     ///< bucket = mean over ranks of what the codes say
  // Own lists
  select,          ///< pairs = the `factor` share of the data of largest magnitude, with indices
  gather_pairs,    ///< everyone's pairs, of one part of the data each
  spread_pairs,    ///< data = sum of all pairs
  scatter_reduce,  ///< this rank's part of the data = sum over ranks
  gather_parts,    ///< data = everyone's parts
  gather_sum,      ///< data = sum of everyone's, gathered
  broadcast,       ///< data = rank 0's
  touch,           ///< reads and writes memory, changes nothing
  // Others
  synchronize,      ///< the host waits for the device
  update,           ///< the optimizer, for this bucket's parameters
  send_parameters,  ///< this bucket's parameters = their owner's
  reduce_subgroup,  ///< data = sum over this rank's subgroup
  divide_subgroup,  ///< data /= ranks of the subgroup
  plugin_before,    ///< the user's code: payload = f(bucket)
  plugin_reduce,    ///< payload = sum over ranks
  plugin_after,     ///< the user's code: bucket = f(payload)
};
std::string_view name_of(CommAction action);

/// One task of a comm hook on one bucket.
struct CommStep {
  CommAction action = CommAction::reduce;
  Operation operation = Operation::all_reduce;
  std::int32_t tensor = nobody;   ///< position in the bucket; nobody: all of it
  Kernel kernel;                  ///< what it costs, if it is no collective
  Bytes payload;                  ///< handed to the collective by each rank
  Duration host{};                ///< of the host itself, besides launching
  DType type = DType::fp32;       ///< of the data it works on
  double factor = 1;              ///< scale, select; divide_subgroup: ranks of a subgroup
  std::uint8_t communicator = 0;  ///< a collective's
};

/// A bucket as a comm hook sees it.
struct CommBucket {
  struct Matrix {
    std::int64_t rows = 0, columns = 0;  ///< first dimension; product of the others
    bool operator==(const Matrix&) const = default;
  };
  std::vector<Matrix> gradients;  ///< in the order they lie in the bucket
  DType type = DType::fp32;
  std::int64_t elements() const;
};
CommBucket::Matrix matrix_of(const std::vector<std::int64_t>& shape);

/// PowerSGD's rank for a matrix, or 0: it is not compressed.
/// Source: pytorch powerSGD_hook.py _should_compress (rule R40).
int powersgd_rank(const PowerSgd& state, CommBucket::Matrix matrix);

/// A gradient that PowerSGD compresses: M = P Q^T, P of rows x rank, Q of columns x rank.
struct LowRank {
  std::int32_t tensor = nobody;  ///< position in the bucket
  std::int64_t rows = 0, columns = 0, rank = 0;
};
/// Those of a bucket, in the order in which their P and Q lie, are drawn and multiplied: of equal
/// shapes one after the other, shapes as they first come. Source: powerSGD_hook.py shape_to_tensors.
std::vector<LowRank> low_rank_gradients(const PowerSgd& state,
                                        std::span<const CommBucket::Matrix> gradients);

/// The side of the square that batched PowerSGD makes of a bucket.
std::int64_t batched_side(std::int64_t elements);

inline constexpr std::int64_t quantization_channel = 512;  ///< elements

/// What the hook does with a bucket in one iteration (counted from 1; 0: the steady state), in order.
/// Those before the first collective run where DDP calls the hook, those behind it once the
/// collective has ended; zero_step.hpp says when ZeRO's do. `ranks_per_node`: the subgroup of
/// post_local_sgd where it names none.
/// Source: pytorch default_hooks.py, powerSGD_hook.py, quantization_hooks.py, post_localSGD_hook.py,
/// optimizer_overlap_hooks.py, ddp_zero_hook.py; rules R39-R45.
std::vector<CommStep> comm_steps(const CommHook& hook, const CommBucket& bucket, int ranks,
                                 int ranks_per_node, bool synchronous, int iteration);

/// Whether anything is computed behind the first collective.
bool computes_aside(const std::vector<CommStep>& steps);

/// Bytes of device memory the hook takes besides the buckets: kept from step to step, and at most at
/// one time for one bucket.
struct CommMemory {
  Bytes kept, transient;
};
CommMemory comm_memory(const CommHook& hook, const CommBucket& bucket, int ranks);

/// Does the hook's result lie in the bucket itself? (If not, gradients that are views of it take a copy.)
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
