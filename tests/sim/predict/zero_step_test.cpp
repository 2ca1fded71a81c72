// ZeRO's hooks: ranks with different work.

#include <catch2/catch.hpp>

#include "model/parallel/order/build_job.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "tests/sim/predict/models.hpp"

namespace ddpsim::timed {
namespace {

using namespace std::chrono_literals;

/// Three layers of 2 ms forward and 4 ms backward, 1 MB of gradient each, on a ring of 1 GB/s
/// without latency: among two ranks 1 ms an all-reduce, half of that a broadcast. The optimizer
/// takes 3 ms, so
/// 1 ms a layer. Copies are free, a hook's division is not: 2 MB at 1 TB/s and a
/// kernel's ramp of 3.2 us.
StepModel three_layers(int ranks = 2, bool synchronous = false) {
  Workload workload = chain(3, 2ms, 4ms, {1'000'000});
  workload.optimizer = 3ms;
  Cluster cluster = ring(ranks, 0us, gigabytes_per_second(1));
  cluster.device.synchronous = synchronous;
  StepModel model = model_of(workload, cluster);
  free_copies(model);
  return model;
}
constexpr Duration divide = 5200ns;

Training with_hook(CommHookKind kind) {
  Training training;
  training.buckets = {{2}, {1}, {0}};
  training.comm_hook.kind = kind;
  return training;
}

}  // namespace

TEST_CASE("R45: zero_step updates once backward has ended, each rank its own buckets",
          "[sim][zero_step][rules]") {
  // Backward ends, with three divisions d, at 18 + 3 d, the last all-reduce at 19 + 3 d. Rank 0
  // updates bucket 0 beside it, rank 1 bucket 1; both are broadcast from 19 + 3 d to 20 + 3 d. Rank
  // 0 updates bucket 2 meanwhile, and broadcasts it for half a millisecond.
  const Step step = predict(three_layers(), with_hook(CommHookKind::zero_step));
  CHECK(step.metrics.step == 20500us + 3 * divide);
  CHECK(step.ranks.size() == 2);
  CHECK(step.metrics.collectives == 6);
  CHECK(step.metrics.wire == Bytes{6'000'000});
  // Of a step whose every rank updates everything it ends 19 + 3 d + 3.
  CHECK(predict(three_layers(), with_hook(CommHookKind::allreduce)).metrics.step ==
        22ms + 3 * divide);
}

TEST_CASE("R45: zero_step_interleaved updates each bucket beside backward, which stands still",
          "[sim][zero_step][rules]") {
  // Rank 0 updates bucket 0 from 11 + d, so its second layer ends at 15 + d; the second all-reduce
  // waits for it, to 16 + 2 d. Then rank 1 updates, and its last layer ends at 19 + 2 d, as rank
  // 0's does. The last all-reduce, update and broadcast follow: 19 + 3 d, and 1 + 1 + 0.5.
  const Step step = predict(three_layers(), with_hook(CommHookKind::zero_step_interleaved));
  CHECK(step.metrics.step == 21500us + 3 * divide);
}

TEST_CASE("R45: ranks that own no bucket are simulated once", "[sim][zero_step][rules]") {
  const bool synchronous = GENERATE(false, true);
  const auto kind = GENERATE(CommHookKind::zero_step, CommHookKind::zero_step_interleaved);
  CAPTURE(synchronous, name_of(kind));
  for (const int ranks : {1, 2, 3, 4, 7}) {
    CAPTURE(ranks);
    const StepModel model = three_layers(ranks, synchronous);
    const Training training = with_hook(kind);
    const Step step = predict(model, training);
    CHECK(step.ranks.size() == static_cast<std::size_t>(std::min(ranks, 4)));
    // All told apart, since each has a list of costs of its own.
    const program::Job job = build_job(model.works, training);
    JobCosts costs;
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
      costs.kinds.push_back(model.costs.price(job.works, job.passes));
      costs.of_rank.push_back(rank);
    }
    const JobTimeline all = simulate(job, costs);
    CHECK(all.classes.size() == static_cast<std::size_t>(ranks));
    CHECK(step.times.end == all.end);
  }
}

TEST_CASE("R45: a slow rank is slow in its own work", "[sim][zero_step][rules]") {
  const auto kind = GENERATE(CommHookKind::zero_step, CommHookKind::zero_step_interleaved);
  StepModel model = three_layers();
  const Duration even = predict(model, with_hook(kind)).metrics.step;
  model.costs.slowest_rank = 1.5;
  const Step uneven = predict(model, with_hook(kind));
  CHECK(uneven.ranks.size() == 2);
  CHECK(uneven.metrics.step > even);
  // Forward and backward of the slow rank: 27 ms, and an all-reduce and a broadcast at least.
  CHECK(uneven.metrics.step >= 27ms + 1500us);
}

TEST_CASE("R45: too many different ranks are refused", "[sim][zero_step]") {
  Workload workload = chain(3000, 1us, 1us, {4});
  workload.optimizer = 1us;
  const StepModel model = model_of(workload, ring(4000, 0us, gigabytes_per_second(1)));
  Training training = with_hook(CommHookKind::zero_step);
  training.buckets.clear();
  training.bucket_cap = Bytes{1};
  training.first_bucket_cap.reset();
  CHECK_THROWS_WITH(predict(model, training), Catch::Contains("different work"));
}

TEST_CASE("R45: what asks for many bucketings simulates ZeRO's hooks too", "[sim][zero_step]") {
  const auto kind = GENERATE(CommHookKind::zero_step, CommHookKind::zero_step_interleaved);
  const StepModel model = three_layers();
  Training training = with_hook(kind);
  BucketSteps steps(model, training);
  for (const std::vector<std::vector<int>>& buckets :
       {std::vector<std::vector<int>>{{2}, {1}, {0}}, {{2, 1}, {0}}, {{2, 1, 0}}}) {
    training.buckets = buckets;
    CHECK(steps.of(buckets) == predict(model, training).metrics.step);
  }
}

}  // namespace ddpsim::timed
