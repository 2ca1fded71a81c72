#include "sim/predict/step_sequence.hpp"

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/sim/predict/models.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// Three layers of 1 MB; all-reduces at 1 GB/s between two ranks.
StepModel three_reduced_layers() {
  return timed::model_of(timed::chain(3, 2ms, 4ms, Bytes{1'000'000}),
                         timed::ring(2, Duration::zero(), gigabytes_per_second(1)));
}

Training one_byte_cap() {
  Training training;
  training.bucket_cap = Bytes{1};
  training.first_bucket_cap.reset();
  return training;
}

}  // namespace

TEST_CASE("R8: consecutive steps have the buckets of their phase", "[sim][consecutive]") {
  const StepModel model = three_reduced_layers();
  const ConsecutiveSteps steps = consecutive_steps(model, one_byte_cap(), 5);
  REQUIRE(steps.kinds.size() == 3);
  CHECK(steps.sequence == std::vector<std::int32_t>{0, 1, 2, 2, 2});
  CHECK(steps.counts == std::vector<std::int64_t>{1, 1, 3});
  CHECK(steps.kinds[0].job().groups.size() == 1);
  CHECK(steps.kinds[1].job().groups.size() == 3);
  // The rebuild is one iteration's; afterwards steps are the steady ones.
  CHECK(steps.kinds[1].metrics.step > steps.kinds[2].metrics.step);
  CHECK(steps.kinds[2].metrics.step == predict(model, one_byte_cap()).metrics.step);
  const double sum = in_seconds(steps.kinds[0].metrics.step) +
                     in_seconds(steps.kinds[1].metrics.step) +
                     3 * in_seconds(steps.kinds[2].metrics.step);
  CHECK(steps.total_seconds() == Approx(sum));
}

TEST_CASE("a million steps take as few simulations as there are kinds", "[sim][consecutive]") {
  Training training = one_byte_cap();
  training.comm_hook.kind = CommHookKind::powersgd;
  const ConsecutiveSteps steps = consecutive_steps(three_reduced_layers(), training, most_steps);
  CHECK(steps.sequence.size() == 1'000'000);
  // First, rebuilt, not compressed yet, first compressed, compressed.
  CHECK(steps.counts == std::vector<std::int64_t>{1, 1, 998, 1, 998'999});
  CHECK_THROWS_AS(consecutive_steps(three_reduced_layers(), training, most_steps + 1),
                  std::invalid_argument);
  CHECK_THROWS_AS(consecutive_steps(three_reduced_layers(), training, 0), std::invalid_argument);
}

TEST_CASE("a steady step of post_local_sgd has its share of the one that averages models",
          "[sim][consecutive]") {
  const StepModel model = three_reduced_layers();
  CHECK(!averaged_step(model, predict(model, one_byte_cap())));  // averages nothing
  for (const int start : {0, 1, 2, 3, 7})
    for (const int period : {1, 2, 5}) {
      CAPTURE(start, period);
      Training training = one_byte_cap();
      training.comm_hook.kind = CommHookKind::post_local_sgd;
      training.comm_hook.post_local_sgd.start_iteration = start;
      training.comm_hook.post_local_sgd.period = period;
      const Step steady = predict(model, training);
      const auto averaged = averaged_step(model, steady);
      REQUIRE(averaged);
      CHECK(averaged->period == period);
      // As any averaging step long after training began, when DDP's own first steps are over.
      training.iteration = start + 1 + 60 * period;
      CHECK(averaged->averaging == predict(model, training).metrics.step);
      CHECK(averaged->averaging > steady.metrics.step);
      CHECK(averaged->mean ==
            (steady.metrics.step * (period - 1) + averaged->averaging) / std::int64_t{period});
      CHECK(!averaged_step(model, predict(model, training)));  // one iteration has no mean
    }
}

TEST_CASE("R47: the logger samples ten iterations, then every hundredth", "[sim][consecutive]") {
  CHECK(consecutive_steps(three_reduced_layers(), one_byte_cap(), 9).logged.samples_taken() == 9);
  CHECK(consecutive_steps(three_reduced_layers(), one_byte_cap(), 99).logged.samples_taken() == 10);
  CHECK(consecutive_steps(three_reduced_layers(), one_byte_cap(), 250).logged.samples_taken() ==
        12);
  Training naive;
  naive.strategy = Strategy::naive;
  CHECK(consecutive_steps(three_reduced_layers(), naive, 10).logged.samples_taken() == 0);
}

TEST_CASE("R46: averages are integer running means, and a negative window is dropped",
          "[sim][consecutive]") {
  DdpAverages averages;
  averages.add({10ns, 20ns, 30ns, 7ns});
  averages.add({11ns, 21ns, 31ns, std::nullopt});
  averages.add({13ns, 23ns, 33ns, 3ns});
  // (11 + 10) / 2 = 10; (13 + 2 x 10) / 3 = 11.
  CHECK(averages.avg_forward_compute_time() == 11);
  // Of the overlap the second sample is counted and left out: (3 + 2 x 7) / 3 = 5.
  CHECK(averages.avg_backward_compute_comm_overlap_time() == 5);
}

TEST_CASE("R34: DDP logs no overlap in a static graph's first iteration", "[sim][consecutive]") {
  Training training = one_byte_cap();
  training.static_graph = true;
  training.iteration = 1;
  const Step first = predict(three_reduced_layers(), training);
  const auto logged = ddp_statistics(first.rank());
  REQUIRE(logged);
  CHECK(!logged->overlap);
  CHECK(logged->forward_compute == 6ms);
  CHECK(logged->backward_compute == 12ms);
  CHECK(logged->backward_comm == first.metrics.step - 18ms);  // from the used map on
  training.iteration = 0;
  const Step steady = predict(three_reduced_layers(), training);
  const auto later = ddp_statistics(steady.rank());
  REQUIRE(later);
  CHECK(later->overlap > 7ms);  // from the first of three hooks to the end of backward
}

TEST_CASE("R32: the host stands still until the used map has come", "[sim][consecutive]") {
  Workload workload = timed::chain(3, 2ms, 4ms, Bytes{1'000'000});
  workload.optimizer = 1ms;
  Training training = one_byte_cap();
  training.find_unused_parameters = true;
  const auto optimizer_issued = [&](bool unused) {
    workload.parameters[1].unused = unused;
    const StepModel model =
        timed::model_of(workload, timed::ring(2, Duration::zero(), gigabytes_per_second(1)));
    const Step step = predict(model, training);
    return step.rank().times.back().issued - Instant{};
  };
  // Launches cost nothing, so the host is far ahead, unless it has to read the map at the end of
  // backward: after 18 ms at the earliest.
  CHECK(optimizer_issued(false) == 3us);  // the graph walk over three operations
  CHECK(optimizer_issued(true) >= 18ms);
}
