// What holds of every predicted step, over random workloads and real ones.
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/model/workload/architectures.hpp"
#include "tests/sim/predict/random_steps.hpp"
#include "tests/sim/predict/same_steps.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = 300;

struct RandomStep {
  Workload workload;
  Cluster cluster;
  Training training;
  StepModel model() const { return StepModel(workload, cluster, Optimizer::sgd); }
};

template <typename Check>
void for_random_steps(std::uint64_t seed, bool interference, Check&& check) {
  Dice dice(seed);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(seed, round);
    RandomStep step;
    step.workload = random_workload(dice);
    step.cluster = random_cluster(dice, interference);
    step.training = random_training(dice, step.workload);
    check(step);
  }
}

std::vector<Workload> real_workloads() {
  using namespace architectures;
  return {build(resnet18), build(resnet50), build(bert_base), build(cs336_small)};
}

Training with(Training training, Strategy strategy) {
  training.strategy = strategy;
  return training;
}

}  // namespace

TEST_CASE("no strategy is faster than communicating nothing", "[sim][predict]") {
  const auto none_is_shortest = [](const StepModel& model, const Training& training) {
    const Duration none = predict(model, with(training, Strategy::none)).metrics.step;
    for (const Strategy strategy : replicating_strategies) {
      CAPTURE(name_of(strategy));
      REQUIRE(predict(model, with(training, strategy)).metrics.step >= none);
    }
  };
  for_random_steps(11, true,
                   [&](const RandomStep& step) { none_is_shortest(step.model(), step.training); });
  for (const Workload& workload : real_workloads())
    none_is_shortest(StepModel(workload, timed::eight_gpus(), Optimizer::adamw), Training{});
}

TEST_CASE("every parameter is reduced exactly once in each synchronised micro-batch",
          "[sim][predict]") {
  for_random_steps(12, false, [](const RandomStep& step) {
    const Training& training = step.training;
    const FlatStep schedule = flat_step(step.model().works, training);
    const auto rounds_of = static_cast<std::size_t>(training.micro_batches);
    std::vector<std::vector<int>> times(rounds_of,
                                        std::vector<int>(step.workload.parameters.size(), 0));
    for (const FlatTask& task : schedule.tasks) {
      const Work& work = schedule.work_of(task);
      const bool sparse = work.message == Message::sparse_values;
      if (!is_collective(task.operation) || task.bucket == nobody) continue;
      if (!sparse && work.message != Message::gradients) continue;
      const program::ParameterGroup& bucket =
          schedule.buckets.at(static_cast<std::size_t>(task.bucket));
      const std::size_t first = static_cast<std::size_t>(bucket.parameters.front());
      Bytes size = sparse ? step.workload.parameters[first].sparse_indices() : Bytes{};
      REQUIRE(work.payload + size == bucket.size);
      for (const std::int32_t parameter : bucket.parameters) {
        ++times[static_cast<std::size_t>(task.micro_batch)][static_cast<std::size_t>(parameter)];
        size += step.workload.parameters[static_cast<std::size_t>(parameter)].size();
      }
      REQUIRE(size == bucket.size);
    }
    for (std::size_t micro_batch = 0; micro_batch < rounds_of; ++micro_batch) {
      const bool last = micro_batch + 1 == rounds_of;
      const bool synced = training.strategy != Strategy::none && (last || !training.no_sync);
      for (const int count : times[micro_batch]) REQUIRE(count == (synced ? 1 : 0));
    }
  });
}

TEST_CASE("a step moves every gradient once per synchronised micro-batch", "[sim][predict]") {
  for_random_steps(13, false, [](const RandomStep& step) {
    const Training& training = step.training;
    const int synced = training.strategy == Strategy::none ? 0
                       : training.no_sync                  ? 1
                                                           : training.micro_batches;
    const Step predicted = predict(step.model(), training);
    Bytes others;  // than gradients: buffers, what DDP tells, and where sparse rows belong
    const FlatStep schedule = flat(predicted.job());
    for (const FlatTask& task : schedule.tasks) {
      const Work& work = schedule.work_of(task);
      if (is_collective(task.operation) && work.message != Message::gradients &&
          work.message != Message::sparse_values)
        others += work.payload;
    }
    REQUIRE(predicted.metrics.wire == synced * step.workload.gradient_size() + others);
  });
}

TEST_CASE("a step is never shorter than its bytes over the bandwidth", "[sim][predict]") {
  for_random_steps(14, true, [](const RandomStep& step) {
    const Step predicted = predict(step.model(), step.training);
    const StepMetrics& metrics = predicted.metrics;
    Bytes reduced = metrics.wire;  // broadcasts, which move half as much, are left out
    const FlatStep schedule = flat(predicted.job());
    for (const FlatTask& task : schedule.tasks) {
      const Work& work = schedule.work_of(task);
      if (task.operation == Operation::broadcast) reduced += Bytes{-work.payload.count};
    }
    const double n = step.cluster.ranks();
    const double seconds = 2 * (n - 1) / n * static_cast<double>(reduced.count) /
                           step.cluster.intra_node.bandwidth.bytes_per_second;
    // Each all-reduce is rounded to the nearest picosecond.
    REQUIRE(metrics.communication + metrics.collectives * Duration{1} >= from_seconds(seconds));
    REQUIRE(metrics.step >= metrics.communication);
  });
}

TEST_CASE("a step is never shorter than its kernels, nor than the host's time", "[sim][predict]") {
  for_random_steps(15, true, [](const RandomStep& step) {
    const StepModel model = step.model();
    const Step prediction = predict(model, step.training);
    const FlatStep schedule = flat(prediction.job());
    const Costs costs = model.costs.price(schedule.works, schedule.passes);
    Duration kernels{}, host{};
    for (const FlatTask& task : schedule.tasks) {
      const WorkCost& cost = costs.works[task.work];
      if (task.stream != StepStream::communication) kernels += cost.work;
      host += cost.host;
    }
    REQUIRE(prediction.metrics.step >= kernels);
    REQUIRE(prediction.metrics.step >= host);
  });
}

TEST_CASE("the critical path is as long as the step", "[sim][predict]") {
  // Ranks alike never wait for each other: no gaps.
  const auto path_is_whole = [](const StepModel& model, const Training& training) {
    const Step prediction = predict(model, training);
    Duration sum{};
    for (const CriticalPiece& piece : critical_path(prediction.rank())) {
      REQUIRE(piece.length >= Duration::zero());
      sum += piece.length;
    }
    REQUIRE(sum == prediction.metrics.step);
  };
  for_random_steps(16, true,
                   [&](const RandomStep& step) { path_is_whole(step.model(), step.training); });
  for (const Workload& workload : real_workloads())
    for (const Strategy strategy : all_strategies)
      // Under zero1 a rank waits for what others update (docs/limits.md).
      if (strategy != Strategy::zero1)
        path_is_whole(StepModel(workload, timed::eight_gpus(), Optimizer::adamw_loop),
                      with(Training{}, strategy));
}

TEST_CASE("passes and exposed time fit into the step", "[sim][predict]") {
  for_random_steps(17, true, [](const RandomStep& step) {
    const StepMetrics metrics = predict(step.model(), step.training).metrics;
    REQUIRE(metrics.forward >= 0us);
    REQUIRE(metrics.backward >= 0us);
    REQUIRE(metrics.forward + metrics.backward + metrics.optimizer <= metrics.step);
    for (const BucketTimes& bucket : metrics.buckets) {
      REQUIRE(bucket.ready <= bucket.start);
      REQUIRE(bucket.start <= bucket.end);
      REQUIRE(bucket.exposed <= bucket.end - bucket.start);
      REQUIRE(bucket.exposed >= Duration::zero());
    }
  });
}

TEST_CASE("the same step twice gives the same timeline", "[sim][predict]") {
  for_random_steps(18, true, [](const RandomStep& step) {
    const Step one = predict(step.model(), step.training);
    const Step other = predict(step.model(), step.training);
    REQUIRE(same(one, other));
  });
}
