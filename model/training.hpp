#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "model/bucketing.hpp"
#include "model/comm_hook.hpp"
#include "model/user_hook.hpp"

namespace ddpsim {

/// How gradients are averaged; what each means is said in the README and built in
/// schedule_builder.cpp.
enum class Strategy : std::uint8_t { none, naive, flat, overlap, bucketed };
inline constexpr std::array all_strategies{Strategy::none, Strategy::naive, Strategy::flat,
                                           Strategy::overlap, Strategy::bucketed};

constexpr std::string_view name_of(Strategy strategy) {
  constexpr std::array<std::string_view, all_strategies.size()> names{"none", "naive", "flat",
                                                                      "overlap", "bucketed"};
  return names[static_cast<std::size_t>(strategy)];
}

constexpr std::optional<Strategy> strategy_named(std::string_view name) {
  for (const Strategy strategy : all_strategies)
    if (name_of(strategy) == name) return strategy;
  return std::nullopt;
}

/// DDP's first iteration runs with its construction-time buckets; every later one with the rebuilt
/// ones.
enum class Phase : std::uint8_t { steady, first };
inline constexpr std::array all_phases{Phase::steady, Phase::first};
constexpr std::string_view name_of(Phase phase) {
  return phase == Phase::steady ? "steady" : "first";
}

/// How a step is trained: everything that shapes its schedule besides the workload and the cluster.
struct Training {
  Strategy strategy = Strategy::bucketed;
  Bytes bucket_cap = default_bucket_cap;
  /// None: the first bucket is not special.
  std::optional<Bytes> first_bucket_cap = default_first_bucket_cap;
  std::vector<Bytes> bucket_caps;  ///< if given: a cap per bucket in order, the last one repeating
  /// If given: parameter indices of each bucket, in launch order.
  std::vector<std::vector<int>> buckets;
  int parameter_groups = 0;  ///< if positive: so many contiguous groups are the buckets
  BucketRule bucket_rule = BucketRule::torch;
  int micro_batches = 1;
  bool no_sync = false;  ///< only the last micro-batch communicates
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool gradient_as_bucket_view = false;
  /// Bucketed: rank 0's buffers to all before each synchronised forward.
  bool broadcast_buffers = true;
  Phase phase = Phase::steady;
  CommHook comm_hook;  ///< bucketed
  /// The user's, on gradients and layers, under every strategy; in the order they run on one
  /// gradient.
  std::vector<UserHook> hooks;
  /// Which iteration of the training, from 1, as hooks that change their ways count them; 0: the
  /// steady state.
  int iteration = 0;

  std::vector<Bytes> limits() const {
    if (!bucket_caps.empty()) return bucket_caps;
    if (first_bucket_cap) return {*first_bucket_cap, bucket_cap};
    return {bucket_cap};
  }
};

}  // namespace ddpsim
