// FullyShardedDataParallel for real: flat parameters are gathered, flat gradients reduce-scattered,
// parts updated.

#include <catch2/catch.hpp>

#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

using FlatParameters = std::vector<std::vector<float>>;  // [parameter]

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

/// What all ranks keep of each parameter after so many steps, put together.
FlatParameters flat_parameters_after(const SmallJob& small, const Training& training, int steps) {
  const int ranks = small.cluster.ranks();
  const program::Job step = telling_parameters(small.step(training));
  std::vector<FlatParameters> kept(at(ranks));
  REQUIRE(run_job(job_of(ranks), [&](Backend& rank) {
            rank.load(small.workload, small.optimizer);
            for (int each = 0; each < steps; ++each) rank.run(step);
            if (steps == 0) rank.run(without_updates(step));
            for (int p = 0; p < static_cast<int>(small.workload.parameters.size()); ++p)
              kept[at(rank.rank())].push_back(rank.gradient(p));
            return 0;
          }) == 0);
  FlatParameters all(small.workload.parameters.size());
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (step.parts.empty()) {
      all[p] = kept.front()[p];
      continue;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const program::GradientRange mine = program::gradient_of_rank(step, rank, p);
      const auto begin = kept[at(rank)][p].begin() + mine.at;
      if (mine.count > 0) all[p].insert(all[p].end(), begin, begin + mine.count);
    }
    REQUIRE(all[p].size() == static_cast<std::size_t>(step.parts[p].whole));
  }
  return all;
}

}  // namespace

TEST_CASE("F72-F77: every rank ends with the mean of its part of the flat gradients",
          "[backend][fsdp]") {
  const int ranks = GENERATE(1, 2, 3);
  const std::string backend = ranks == 3 ? GENERATE("threads", "gloo") : "threads";
  const SmallJob job(ranks);
  for (Training training : all_ways())
    for (const int micro_batches : {1, 3})
      for (const bool no_sync : {false, true}) {
        if (micro_batches == 1 && no_sync) continue;
        training.micro_batches = micro_batches;
        training.no_sync = no_sync;
        CAPTURE(ranks, backend, micro_batches, no_sync, training.units,
                name_of(training.fsdp.sharding_strategy), training.fsdp.forward_prefetch,
                name_of(training.fsdp.backward_prefetch), training.fsdp.use_orig_params);
        Training none = training;
        none.strategy = Strategy::none;
        const program::Job step = job.step(training);
        const int checked = run_job(job_of(ranks, backend), [&](Backend& rank) {
          rank.load(job.workload, job.optimizer);
          const GradientReference reference =
              reference_of(rank, job, job.step(none), micro_batches);
          rank.run(without_updates(step));
          ExpectedGradients expected;
          expected.in_parts = &step;
          if (!check_gradients(rank, job.workload, reference, expected).good()) return 5;
          // It can fail: half of the mean is not the mean.
          expected.divisor = 2 * ranks;
          return check_gradients(rank, job.workload, reference, expected).good() ? 6 : 0;
        });
        CHECK(checked == 0);
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
        Training none = training;
        none.strategy = Strategy::none;
        const program::Job step = job.step(training);
        const int checked = run_job(job_of(4, backend), [&](Backend& rank) {
          rank.load(job.workload, job.optimizer);
          const GradientReference reference =
              reference_of(rank, job, job.step(none), micro_batches);
          rank.run(without_updates(step));
          ExpectedGradients expected;
          expected.in_parts = &step;
          const GradientCheck check = check_gradients(rank, job.workload, reference, expected);
          return !check.identical ? 5 : check.good() ? 0 : 6;
        });
        CHECK(checked == 0);
      }
}

TEST_CASE("F72: flat parameters become what flat makes of them", "[backend][fsdp]") {
  const int ranks = GENERATE(1, 2, 3);
  SmallJob job(ranks);
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adamw}) {
    job.optimizer = optimizer;
    Training flat;
    flat.strategy = Strategy::flat;
    const FlatParameters untouched = flat_parameters_after(job, flat, 0);
    const FlatParameters expected = flat_parameters_after(job, flat, 3);
    for (const Training& training : all_ways()) {
      CAPTURE(ranks, name_of(optimizer), training.units, name_of(training.fsdp.sharding_strategy),
              training.fsdp.forward_prefetch, name_of(training.fsdp.backward_prefetch),
              training.fsdp.use_orig_params);
      CHECK((flat_parameters_after(job, training, 0) == untouched));
      const FlatParameters found = flat_parameters_after(job, training, 3);
      CHECK((found != untouched));
      if (ranks < 3) {  // sums of two have one order, and halves are exact
        CHECK((found == expected));
        continue;
      }
      for (std::size_t p = 0; p < found.size(); ++p)
        for (std::size_t i = 0; i < found[p].size(); ++i)
          if (found[p][i] != Approx(expected[p][i]).epsilon(1e-4).margin(1e-6)) {
            CAPTURE(p, i, found[p][i], expected[p][i]);
            FAIL_CHECK("another parameter");
            break;
          }
    }
  }
}

}  // namespace ddpsim
