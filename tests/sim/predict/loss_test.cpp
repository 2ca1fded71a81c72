// What a step loses, part by part.
#include "sim/predict/loss.hpp"

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/sim/predict/models.hpp"
#include "tests/sim/predict/random_trainings.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

/// Three layers of 2 ms forward and 4 ms backward, 1 MB of gradient each; two ranks on a ring of
/// 1 GB/s and 250 us: an all-reduce takes 2 x 0.25 + 1 = 1.5 ms. Copies are free.
StepModel three_layers_alike(Cluster cluster = timed::ring(2, 250us, gigabytes_per_second(1))) {
  StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}), cluster);
  timed::free_copies(model);
  return model;
}

StepLoss loss_of(const StepModel& model, Strategy strategy) {
  return step_loss(model, predict(model, timed::training_of(strategy)));
}

std::vector<Duration> parts(const StepLoss& loss) {
  return {loss.parts.begin(), loss.parts.end()};
}

}  // namespace

TEST_CASE("a flat step loses the wait for the slowest rank, then its all-reduce", "[sim][loss]") {
  StepModel model = three_layers_alike();
  // Ranks compute for 18 ms; the all-reduce of 3 MB takes 0.5 + 3.
  const StepLoss even = loss_of(model, Strategy::flat);
  CHECK(even.one_rank == 18ms);
  CHECK(parts(even) == std::vector<Duration>{0ms, 0ms, 0ms, 3ms, 500us, 0ms, 0ms, 0ms});
  // One of them computes for 27; the others wait for 9.
  model.costs.slowest_rank = 1.5;
  const StepLoss uneven = loss_of(model, Strategy::flat);
  CHECK(uneven.one_rank == 18ms);
  CHECK(parts(uneven) == std::vector<Duration>{0ms, 0ms, 9ms, 3ms, 500us, 0ms, 0ms, 0ms});
}

TEST_CASE("a step without communication loses the wait for the slowest rank alone", "[sim][loss]") {
  StepModel model = three_layers_alike();
  CHECK(loss_of(model, Strategy::none).sum() == 0ms);
  model.costs.slowest_rank = 1.5;
  const StepLoss loss = loss_of(model, Strategy::none);
  CHECK(loss.by(Loss::slowest_rank) == 9ms);
  CHECK(loss.sum() == 9ms);
}

TEST_CASE("what a step waits for its batches is lost to input, before all else", "[sim][loss]") {
  // A flat step of 18 + 0.5 + 3 ms, whose node makes batches for 30: one rank's take half of that.
  StepModel model = three_layers_alike();
  Training flat = timed::training_of(Strategy::flat);
  flat.pipeline = InputPipeline{15ms, 1};
  model.costs.least_step = flat.least_step(2);
  const StepLoss loss = step_loss(model, predict(model, flat));
  CHECK(loss.one_rank == 18ms);
  CHECK(parts(loss) == std::vector<Duration>{8500us, 0ms, 0ms, 3ms, 500us, 0ms, 0ms, 0ms});
  // Batches of 20 ms each: one rank waits for its own. Of the 1.5 ms until then, the transfer or
  // the latency, whichever goes first, saves 1.5 or 0.5, and the other one what is left.
  flat.pipeline = InputPipeline{20ms, 1};
  model.costs.least_step = flat.least_step(2);
  const StepLoss longer = step_loss(model, predict(model, flat));
  CHECK(longer.one_rank == 20ms);
  CHECK(parts(longer) == std::vector<Duration>{18500us, 0ms, 0ms, 1250us, 250us, 0ms, 0ms, 0ms});
}

TEST_CASE("kernels slowed beside a collective are interference", "[sim][loss]") {
  // Two all-reduces of 1.5 ms take 0.75 of the progress of the kernels beside them; the third ends
  // 1.5 after backward.
  Cluster cluster = timed::ring(2, 250us, gigabytes_per_second(1));
  cluster.interference = FixedInterference{2, 1};
  const StepLoss loss = loss_of(three_layers_alike(cluster), Strategy::overlap);
  CHECK(parts(loss) == std::vector<Duration>{0ms, 1500us, 0ms, 1ms, 500us, 0ms, 0ms, 0ms});
}

TEST_CASE("a part is the mean of what it saves before others and behind them", "[sim][loss]") {
  // The first of three all-reduces of 0.5 + 6 ms starts at 10 and ends at 16.5, the second at 23,
  // the third at 29.5, 11.5 after backward. Without the transfer all but the last 0.5 is hidden.
  // Without latency, 6 + 6 + 6 from 10 on end at 28.
  StepModel model = timed::model_of(timed::chain(3, 2ms, 4ms, {6'000'000}),
                                    timed::ring(2, 250us, gigabytes_per_second(1)));
  timed::free_copies(model);
  // Transfer first: 11 and 0.5; latency first: 10 and 1.5.
  CHECK(parts(loss_of(model, Strategy::overlap)) ==
        std::vector<Duration>{0ms, 0ms, 0ms, 10500us, 1ms, 0ms, 0ms, 0ms});
  // An all-reduce of 5 + 1 ms: 10 to 16, to 22, to 28: 10 are exposed. Without the transfer they
  // are those of 5, 10 to 15, to 20, to 25; without latency, of 1, the last from 18 to 19.
  model = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}),
                          timed::ring(2, 2500us, gigabytes_per_second(1)));
  timed::free_copies(model);
  // Transfer first: 3 and 7; latency first: 9 and 1.
  CHECK(parts(loss_of(model, Strategy::overlap)) ==
        std::vector<Duration>{0ms, 0ms, 0ms, 2ms, 8ms, 0ms, 0ms, 0ms});
}

TEST_CASE("of two causes either of which would be hidden each has half", "[sim][loss]") {
  // The first gradient is there at 6, and kernels run until 10: of its all-reduce of 2 + 3 ms one
  // is exposed. To take out either part saves that.
  Workload workload = timed::chain(2, 1ms, 4ms, {3'000'000});
  workload.parameters.erase(workload.parameters.begin());
  StepModel model = timed::model_of(workload, timed::ring(2, 1ms, gigabytes_per_second(1)));
  timed::free_copies(model);
  CHECK(parts(loss_of(model, Strategy::overlap)) ==
        std::vector<Duration>{0ms, 0ms, 0ms, 500us, 500us, 0ms, 0ms, 0ms});
}

TEST_CASE("what the host and the device do for communication are launches and copies",
          "[sim][loss]") {
  // Host: 1 ms for each of 3 + 3 kernels of 0.5, which end at 6.5; 1 ms for the concatenate of
  // 0.25, at 7 to 7.25; 2 ms for the collective, from 9 to 12.5.
  StepModel model = timed::with_plain_launches(timed::chain(3, 500us, 500us, {1'000'000}),
                                               timed::ring(2, 250us, gigabytes_per_second(1)), 1ms);
  timed::free_copies(model);
  model.works.concatenate = timed::taking(model, Operation::concatenate, 250us);
  model.costs.launch.collective = 2ms;
  // Without the transfer it ends at 9.5, without latency at 9. The copy is hidden by the launch;
  // with launches for free all is over at 6.5. The other way round, launches go first, which leaves
  // the copy from 6.5 to 6.75 and the collective behind it: 2.25 of launches, 0.25 of the copy.
  CHECK(parts(loss_of(model, Strategy::flat)) ==
        std::vector<Duration>{0ms, 0ms, 0ms, 3ms, 500us, 125us, 2375us, 0ms});
  model.works.concatenate = timed::taking(model, Operation::concatenate, 5ms);
  // Now the copy lasts from 7 to 12: 3 ms beyond the launch, which saves 2.5. The other way round
  // launches save 0.5, as the copy then lasts from 6.5 to 11.5, and the copy saves all of its 5.
  CHECK(parts(loss_of(model, Strategy::flat)) ==
        std::vector<Duration>{0ms, 0ms, 0ms, 3ms, 500us, 4ms, 1500us, 0ms});
}

TEST_CASE("the parts of every random step sum to the tick, and only the rest may be negative",
          "[sim][loss]") {
  constexpr std::uint64_t seed = 31;
  Dice dice(seed);
  int lost_to[all_losses.size()] = {}, built = 0;
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(seed, round);
    const Workload workload = any_workload(dice);
    const Cluster cluster = any_cluster(dice);
    Training training = any_training(dice, workload);
    training.strategy = all_strategies[static_cast<std::size_t>(dice.between(0, 4))];
    training.bucket_cap = {dice.between(1, 4'000'000)};
    StepModel model(workload, cluster, Optimizer::sgd);
    const bool even = dice.one_in(3);
    if (!even && model.costs.ranks > 1) model.costs.slowest_rank = 1 + dice.between(1, 300) / 1e3;
    try {
      build_job(model.works, training);
    } catch (const std::exception&) {
      continue;  // not every combination can be built
    }
    ++built;
    Step step = predict(model, training);
    if (round % 4 == 0) {  // one rank's batches take two thirds of the step, two ranks' four
      training.pipeline = InputPipeline{step.metrics.step * 2 / 3 / training.micro_batches, 1};
      model.costs.least_step = training.least_step(2);
      step = predict(model, training);
    }
    const StepLoss loss = step_loss(model, step);
    CAPTURE(name_of(training.strategy), parts(loss), cluster.device.synchronous,
            name_of(training.comm_hook.kind), cluster.collectives_at_once);
    REQUIRE(loss.one_rank + loss.sum() == step.metrics.step);
    if (model.costs.slowest_rank == 1) REQUIRE(loss.by(Loss::slowest_rank) == Duration::zero());
    for (const Loss part : all_losses) {
      CAPTURE(name_of(part));
      if (part != Loss::rest) CHECK(loss.by(part) >= Duration::zero());
      lost_to[static_cast<std::size_t>(part)] += loss.by(part) != Duration::zero();
    }
  }
  CHECK(built > 800);
  for (const Loss part : all_losses) {
    CAPTURE(name_of(part));
    CHECK(lost_to[static_cast<std::size_t>(part)] > 10);
  }
}
