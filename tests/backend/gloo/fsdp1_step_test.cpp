// FullyShardedDataParallel for real: flat parameters are gathered, flat gradients reduce-scattered,
// parts updated.

#include <vector>

#include <catch2/catch.hpp>

#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

Training flatly_sharded(ShardingStrategy strategy, int replicas = 1) {
  Training training;
  training.strategy = Strategy::fsdp;
  training.fsdp.variant = FsdpVariant::fsdp1;
  training.fsdp.sharding_strategy = strategy;
  training.replicate = replicas;
  return training;
}

/// Every way that it gathers and reduces, with units of one parameter and of several.
std::vector<Training> all_ways() {
  std::vector<Training> ways;
  for (const ShardingStrategy strategy :
       {ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op})
    for (const BackwardPrefetch prefetch : all_backward_prefetches)
      for (const bool forward : {false, true})
        for (const bool original : {false, true}) {
          Training& training = ways.emplace_back(flatly_sharded(strategy));
          training.fsdp.backward_prefetch = prefetch;
          training.fsdp.forward_prefetch = forward;
          training.fsdp.use_orig_params = original;
          if (forward) training.units = {{2, 1}};
        }
  return ways;
}

}  // namespace

TEST_CASE("F72-F77: every rank ends with the mean of its part of the flat gradients",
          "[backend][fsdp]") {
  const int ranks = GENERATE(1, 2, 3);
  const std::string backend = ranks == 3 ? GENERATE("threads", "gloo") : "threads";
  const SmallJob job(ranks);
  // Each way with one of three numbers of micro-batches, another one on another number of ranks.
  int turn = ranks + (backend == "gloo" ? 1 : 0);
  for (Training training : all_ways()) {
    const int order = turn++ % 3;
    training.micro_batches = order == 0 ? 1 : 3;
    training.no_sync = order == 2;
    CAPTURE(ranks, backend, training.micro_batches, training.no_sync, training.units,
            name_of(training.fsdp.sharding_strategy), training.fsdp.forward_prefetch,
            name_of(training.fsdp.backward_prefetch), training.fsdp.use_orig_params);
    check_means(job, training, backend);
  }
}

TEST_CASE("F73: replicas of flat parts end with the same mean of all ranks", "[backend][fsdp]") {
  const std::string backend = GENERATE("threads", "gloo");
  const SmallJob job(4);
  for (const ShardingStrategy strategy :
       {ShardingStrategy::hybrid_shard, ShardingStrategy::hybrid_shard_zero2})
    for (const int micro_batches : {1, 2})
      for (const bool no_sync : {false, true}) {
        CAPTURE(backend, name_of(strategy), micro_batches, no_sync);
        Training training = flatly_sharded(strategy, 2);
        training.micro_batches = micro_batches;
        training.no_sync = no_sync;
        check_means(job, training, backend);
      }
}

TEST_CASE("F72: flat parameters become what flat makes of them", "[backend][fsdp]") {
  const int ranks = GENERATE(1, 2, 3);
  SmallJob job(ranks);
  const std::vector<Training> ways = all_ways();
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adamw}) {
    job.optimizer = optimizer;
    Training flat;
    flat.strategy = Strategy::flat;
    const KeptParameters untouched = parameters_after(job, flat, 0);
    const KeptParameters expected = parameters_after(job, flat, 3);
    // Every third way, others with another optimizer and on another number of ranks.
    for (std::size_t way =
             (optimizer == Optimizer::sgd ? 0 : 1) + static_cast<std::size_t>(ranks - 1);
         way < ways.size(); way += 3) {
      const Training& training = ways[way];
      CAPTURE(ranks, name_of(optimizer), training.units, name_of(training.fsdp.sharding_strategy),
              training.fsdp.forward_prefetch, name_of(training.fsdp.backward_prefetch),
              training.fsdp.use_orig_params);
      CHECK((parameters_after(job, training, 0) == untouched));
      const KeptParameters found = parameters_after(job, training, 3);
      CHECK((found != untouched));
      check_alike(found, expected, ranks);
    }
  }
}

}  // namespace ddpsim
