#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ddpsim {

/// How replicas are kept in step. What a strategy adds to a step is in a file of its name in
/// model/parallel/policy.
enum class Strategy : std::uint8_t {
  none,
  naive,
  flat,
  overlap,
  bucketed,
  zero1,
  zero2,
  zero3,
  fsdp
};

/// What a fit takes from a measured row of a strategy (sim/predict/fit.hpp).
enum class Fits : std::uint8_t {
  nothing,
  computation,
  computation_and_calls,
  interference,
  whole_step,  ///< computation, where no other row says it: the laws have the communication
};

/// Which published steps say how far predicted ones are off (scenarios/catalogue/accuracy.csv):
/// those under which all ranks keep all parameters, those of FSDP, or none.
enum class KnownBy : std::uint8_t { replicated_steps, sharded_steps, none };

struct StrategyFacts {
  Strategy strategy;
  std::string_view name;
  std::string_view meaning;  ///< for users
  Fits fits = Fits::nothing;
  KnownBy known_by = KnownBy::replicated_steps;
  bool shares_update = false;              ///< each rank updates a part of the parameters alone
  bool reduces_every_micro_batch = false;  ///< it has no counterpart of no_sync
};
/// In the order of Strategy.
inline constexpr std::array strategy_facts{
    StrategyFacts{Strategy::none, "none", "no communication: the compute-only bound",
                  Fits::computation},
    StrategyFacts{Strategy::naive, "naive",
                  "after the whole backward pass, an all-reduce and a division per parameter, one "
                  "at a time",
                  Fits::computation_and_calls},
    StrategyFacts{Strategy::flat, "flat",
                  "after the whole backward pass: concatenate, one all-reduce, divide, copy back"},
    StrategyFacts{Strategy::overlap, "overlap",
                  "each gradient hook all-reduces its parameter in place; after backward, wait and "
                  "divide each",
                  Fits::interference},
    StrategyFacts{Strategy::bucketed, "bucketed",
                  "DistributedDataParallel: hooks copy gradients into buckets, full buckets are "
                  "launched in order and copied back when done"},
    StrategyFacts{Strategy::zero1, "zero1",
                  "each rank updates a part of the parameters, and sends it to the others: the "
                  "optimizer's state is sharded",
                  Fits::whole_step, KnownBy::none, true},
    StrategyFacts{Strategy::zero2, "zero2",
                  "as zero1, and each rank keeps the gradients of its part alone", Fits::whole_step,
                  KnownBy::none, true, true},
    StrategyFacts{Strategy::zero3, "zero3",
                  "as zero2, and each rank keeps its part of the parameters alone; modules are "
                  "gathered when they run",
                  Fits::whole_step, KnownBy::none, true, true},
    StrategyFacts{
        Strategy::fsdp, "fsdp",
        "PyTorch 2's fully_shard: each rank keeps a part of every parameter; a unit's are "
        "gathered before its passes, and its gradients reduce-scattered behind them",
        Fits::whole_step, KnownBy::sharded_steps, true},
};

inline constexpr auto all_strategies = [] {
  std::array<Strategy, strategy_facts.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = strategy_facts[i].strategy;
  return all;
}();

/// Those under which every rank keeps all parameters.
inline constexpr std::array replicating_strategies{Strategy::none, Strategy::naive, Strategy::flat,
                                                   Strategy::overlap, Strategy::bucketed};

/// Does each rank keep a part of something that under these all of them keep?
constexpr bool shards(Strategy strategy) {
  for (const Strategy each : replicating_strategies)
    if (each == strategy) return false;
  return true;
}

constexpr std::string_view name_of(Strategy strategy) {
  return strategy_facts[static_cast<std::size_t>(strategy)].name;
}

constexpr Fits fits_of(Strategy strategy) {
  return strategy_facts[static_cast<std::size_t>(strategy)].fits;
}
constexpr bool shares_update(Strategy strategy) {
  return strategy_facts[static_cast<std::size_t>(strategy)].shares_update;
}
constexpr bool reduces_every_micro_batch(Strategy strategy) {
  return strategy_facts[static_cast<std::size_t>(strategy)].reduces_every_micro_batch;
}
constexpr KnownBy known_by(Strategy strategy) {
  return strategy_facts[static_cast<std::size_t>(strategy)].known_by;
}

constexpr std::optional<Strategy> strategy_named(std::string_view name) {
  for (const Strategy strategy : all_strategies)
    if (name_of(strategy) == name) return strategy;
  return std::nullopt;
}

}  // namespace ddpsim
