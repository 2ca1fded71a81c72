#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ddpsim {

/// Which of PyTorch's two it is.
enum class FsdpVariant : std::uint8_t {
  fully_shard,  ///< FSDP2: each parameter is cut by rows
  fsdp1,        ///< FullyShardedDataParallel: the parameters of a unit are one flat one
};
inline constexpr std::array all_fsdp_variants{FsdpVariant::fully_shard, FsdpVariant::fsdp1};
constexpr std::string_view name_of(FsdpVariant variant) {
  return variant == FsdpVariant::fully_shard ? "fully_shard" : "fsdp1";
}

/// ShardingStrategy of FullyShardedDataParallel.
enum class ShardingStrategy : std::uint8_t {
  full_shard,          ///< parameters are freed behind their forward pass, but for the root's
  shard_grad_op,       ///< and here behind their backward pass alone
  hybrid_shard,        ///< full_shard within each replica
  hybrid_shard_zero2,  ///< shard_grad_op within each replica
};
inline constexpr std::array all_sharding_strategies{
    ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op, ShardingStrategy::hybrid_shard,
    ShardingStrategy::hybrid_shard_zero2};
constexpr std::string_view name_of(ShardingStrategy strategy) {
  constexpr std::array<std::string_view, all_sharding_strategies.size()> names{
      "FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"};
  return names[static_cast<std::size_t>(strategy)];
}
constexpr bool is_hybrid(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::hybrid_shard ||
         strategy == ShardingStrategy::hybrid_shard_zero2;
}
/// Are parameters freed behind their forward pass?
constexpr bool frees_after_forward(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::full_shard || strategy == ShardingStrategy::hybrid_shard;
}

/// When the unit before the current one is gathered for its backward pass.
enum class BackwardPrefetch : std::uint8_t {
  pre,   ///< before the current one's kernels
  post,  ///< behind them, before its gradients are reduced
  none,  ///< when it is needed
};
inline constexpr std::array all_backward_prefetches{BackwardPrefetch::pre, BackwardPrefetch::post,
                                                    BackwardPrefetch::none};
constexpr std::string_view name_of(BackwardPrefetch prefetch) {
  constexpr std::array<std::string_view, all_backward_prefetches.size()> names{
      "BACKWARD_PRE", "BACKWARD_POST", "none"};
  return names[static_cast<std::size_t>(prefetch)];
}

/// Whose `fsdp` it is, and what FullyShardedDataParallel alone is told.
struct FsdpVariantSettings {
  FsdpVariant variant = FsdpVariant::fully_shard;

  // fsdp1:
  ShardingStrategy sharding_strategy = ShardingStrategy::full_shard;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;
  bool use_orig_params = false;

  bool operator==(const FsdpVariantSettings&) const = default;
};

}  // namespace ddpsim
