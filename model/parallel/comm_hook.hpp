#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/dtype.hpp"

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
inline constexpr auto all_comm_hooks = [] {
  std::array<CommHookKind, static_cast<std::size_t>(CommHookKind::plugin) + 1> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<CommHookKind>(i);
  return all;
}();
// What is known of each kind is in the table of hooks/comm_hooks.cpp.
std::string_view name_of(CommHookKind kind);

constexpr bool is_zero_step(CommHookKind kind) {
  return kind == CommHookKind::zero_step || kind == CommHookKind::zero_step_interleaved;
}
/// Does the hook update its bucket's parameters, so that no optimizer follows the backward pass?
bool updates_parameters(CommHookKind kind);

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

/// A gradient as the two-dimensional matrix a comm hook takes it for.
struct MatrixShape {
  std::int64_t rows = 0, columns = 0;  ///< first dimension; product of the others
  bool operator==(const MatrixShape&) const = default;
};
MatrixShape matrix_of(const std::vector<std::int64_t>& shape);

}  // namespace ddpsim
