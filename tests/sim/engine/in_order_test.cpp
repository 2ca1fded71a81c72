// DDP's in-order example, to the tick: buckets are launched in index order, so the one ready first
// waits for its turn; copies back are pipelined with the all-reduces still under way.
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "model/timeline/ddp_statistics.hpp"
#include "sim/predict/predict.hpp"
#include "tests/sim/predict/fixtures.hpp"
#include "tests/sim/predict/models.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

/// Buckets of one parameter each, in index order; all-reduces of 20 ms, nothing else costs
/// anything.
StepModel example_model(bool synchronous) {
  Cluster cluster = timed::constant(2, 20ms);
  cluster.device.synchronous = synchronous;
  StepModel model = timed::model_of(timed::in_order_example(), cluster);
  timed::free_copies(model);
  return model;
}

Training one_bucket_each() {
  Training training;
  training.buckets = {{0}, {1}, {2}, {3}};
  return training;
}

/// The example's step. By the law copies in and out cost alike; here only copying out takes time.
Step example(bool synchronous, Duration copy_out, const Training& training = one_bucket_each()) {
  StepModel model = example_model(synchronous);
  model.works.copy_back.assign(4, timed::taking(model, Operation::copy_out, copy_out));
  return predict(model, training);
}

std::vector<std::uint32_t> tasks_of(const RankOfJob& rank, Operation operation) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < rank.program.tasks.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    if (!rank.is_part_of_another(task) && operation_of(rank.job, task) == operation)
      found.push_back(i);
  }
  return found;
}

std::vector<Duration> ends_of(const RankOfJob& rank, Operation operation) {
  std::vector<Duration> ends;
  for (const std::uint32_t task : tasks_of(rank, operation))
    ends.push_back(work_of(rank.times[task]).to);
  return ends;
}

/// When everything a bucket's all-reduce follows was in place: its gradient and every earlier
/// bucket.
std::vector<Duration> launches_of(const RankOfJob& rank) {
  std::vector<Duration> launches;
  for (const std::uint32_t task : tasks_of(rank, Operation::all_reduce)) {
    Duration latest{};
    for (const std::uint32_t earlier : rank.program.waits_for(task))
      latest = std::max(latest, work_of(rank.times[earlier]).to);
    launches.push_back(std::max(latest, enqueueing_of(rank.times[task]).to));
  }
  return launches;
}

}  // namespace

TEST_CASE("R16: buckets ready at 30, 10, 40, 50 are launched at 30, 30, 40, 50",
          "[sim][simulate]") {
  const bool synchronous = GENERATE(false, true);
  const Step step = example(synchronous, 1ms);
  CHECK(launches_of(step.rank()) == std::vector<Duration>{30ms, 30ms, 40ms, 50ms});
  CHECK(ends_of(step.rank(), Operation::backward) ==
        std::vector<Duration>{10ms, 30ms, 40ms, 50ms, 55ms});
}

TEST_CASE("R17: their all-reduces of 20 follow one another", "[sim][simulate]") {
  const bool synchronous = GENERATE(false, true);
  const Step step = example(synchronous, 1ms);
  const auto reduces = tasks_of(step.rank(), Operation::all_reduce);
  REQUIRE(reduces.size() == 4);
  CHECK(work_of(step.rank().times[reduces[0]]) == Window{30ms, 50ms});
  CHECK(work_of(step.rank().times[reduces[1]]) == Window{50ms, 70ms});
  CHECK(work_of(step.rank().times[reduces[2]]) == Window{70ms, 90ms});
  CHECK(work_of(step.rank().times[reduces[3]]) == Window{90ms, 110ms});
}

TEST_CASE("R21: copies back of 1 end at 56, 71, 91, 111", "[sim][simulate]") {
  // T = max(T of the bucket before, end of the all-reduce) + 1, from the end of backward at 55.
  const bool synchronous = GENERATE(false, true);
  const Step step = example(synchronous, 1ms);
  CHECK(ends_of(step.rank(), Operation::copy_out) ==
        std::vector<Duration>{56ms, 71ms, 91ms, 111ms});
  CHECK(step.metrics.step == 111ms);
}

TEST_CASE("the example communicates for 80 and exposes 56", "[sim][simulate]") {
  const StepMetrics metrics = example(false, 1ms).metrics;
  Training alone = one_bucket_each();
  alone.strategy = Strategy::none;
  const StepMetrics none = predict(example_model(false), alone).metrics;
  CHECK(none.step == 55ms);
  CHECK(metrics.step == 111ms);
  CHECK(metrics.backward == 55ms);
  CHECK(metrics.communication == 80ms);
  CHECK(metrics.collectives == 4);
  CHECK(exposed(metrics, none) == 56ms);
  CHECK(overlap_ratio(metrics, none) == Approx(1 - 56.0 / 80));
}

TEST_CASE("each bucket of the example tells when it was ready and what it exposed",
          "[sim][simulate]") {
  // The device stands still from 56 to 70, 71 to 90 and 91 to 110.
  const StepMetrics metrics = example(false, 1ms).metrics;
  const std::vector<Duration> ready{30ms, 10ms, 40ms, 50ms}, exposed{0ms, 14ms, 19ms, 19ms};
  REQUIRE(metrics.buckets.size() == 4);
  for (std::size_t b = 0; b < 4; ++b) {
    CAPTURE(b);
    CHECK(metrics.buckets[b].ready == Instant{ready[b]});
    CHECK(metrics.buckets[b].exposed == exposed[b]);
  }
}

TEST_CASE("R46: PyTorch would log 55 of compute, 81 of communication and 25 of overlap",
          "[sim][simulate]") {
  // Marks: first launch at 30, end of compute at 55, end of the last copy back at 111.
  const bool synchronous = GENERATE(false, true);
  const Step step = example(synchronous, 1ms);
  const auto logged = ddp_statistics(step.rank());
  REQUIRE(logged);
  CHECK(logged->forward_compute == 0ms);
  CHECK(logged->backward_compute == 55ms);
  CHECK(logged->backward_comm == 81ms);
  CHECK(logged->overlap == 25ms);
}

TEST_CASE("R46: DDP marks where communication starts even if the comm hook sends nothing",
          "[sim][simulate]") {
  // The first bucket is full at 30, compute ends at 55, and the last of four copies back at 59.
  const bool synchronous = GENERATE(false, true);
  Training training = one_bucket_each();
  training.comm_hook.kind = GENERATE(CommHookKind::noop, CommHookKind::post_local_sgd);
  training.comm_hook.post_local_sgd.gradient_allreduce = false;
  const auto logged_of = [&] {
    const Step step = example(synchronous, 1ms, training);
    const auto logged = ddp_statistics(step.rank());
    REQUIRE(logged);
    return *logged;
  };
  CHECK(logged_of().backward_compute == 55ms);
  CHECK(logged_of().backward_comm == 29ms);
  CHECK(logged_of().overlap == 25ms);
  // The map of used parameters follows the last bucket, at 50, and is waited for until 70.
  training.find_unused_parameters = true;
  CHECK(logged_of().backward_comm == 40ms);
  CHECK(logged_of().overlap == 25ms);
}

TEST_CASE("R22: without copies back the tail is the later of compute and communication",
          "[sim][simulate]") {
  Training training = one_bucket_each();
  training.gradient_as_bucket_view = true;
  CHECK(predict(example_model(false), training).metrics.step == 110ms);
}

TEST_CASE("R20: copies in lengthen compute, copies out do not", "[sim][simulate]") {
  // 1 ms to copy each of four gradients in: compute ends at 59 instead of 55.
  StepModel model = example_model(false);
  model.works.copy_in.assign(4, timed::taking(model, Operation::copy_in, 1ms));
  CHECK(predict(model, one_bucket_each()).metrics.backward == 59ms);
  CHECK(example(false, 1ms).metrics.backward == 55ms);
}
