#include "sim/predict/fit.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/model/workload/architectures.hpp"
#include "tests/sim/predict/models.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// What a run of `strategy` would show if `truth` were so.
MeasuredRow measured(const StepModel& law, const Fit& truth, Strategy strategy) {
  StepModel model = law;
  apply(truth, model.costs);
  const StepMetrics metrics = predict(model, timed::training_of(strategy)).metrics;
  MeasuredRow row;
  row.strategy = strategy;
  row.step = metrics.step;
  row.communication = MeasuredCommunication{metrics.communication, {}};
  return row;
}

Fit fitted(const StepModel& law, const std::vector<MeasuredRow>& rows) {
  std::vector<CalibrationRow> all;
  for (const MeasuredRow& row : rows) all.push_back({&row, timed::training_of(row.strategy), law});
  return fit(all);
}

Approx within_a_percent(double value) {
  return Approx(value).epsilon(0.01);
}

StepModel transformer() {
  const Workload workload = architectures::build(architectures::cs336_small, 8, 512);
  return StepModel(workload, timed::eight_gpus(), Optimizer::adamw);
}

Fit truth_of(double passes, Duration overhead, double interference) {
  Fit truth;
  truth.passes = {passes, passes, 1};
  truth.call_overhead = overhead;
  truth.interference = interference;
  return truth;
}

}  // namespace

TEST_CASE("a fit finds the factors rows were made with", "[sim][calibrate]") {
  const StepModel law = transformer();
  const Fit truth = GENERATE(truth_of(1, 0us, 1), truth_of(1.7, 35us, 0.6), truth_of(0.6, 120us, 2),
                             truth_of(2.5, 300us, 2.4));
  const Fit found =
      fitted(law, {measured(law, truth, Strategy::naive), measured(law, truth, Strategy::overlap)});
  CHECK(found.passes.forward == within_a_percent(truth.passes.forward));
  CHECK(found.passes.backward == found.passes.forward);
  CHECK(found.passes.optimizer == 1);
  CHECK(in_us(found.call_overhead) == within_a_percent(in_us(truth.call_overhead)).margin(0.1));
  CHECK(found.interference == within_a_percent(truth.interference));
  // A time per collective that is half of the communication may be a link that carries less.
  CHECK(found.notes.empty() == (truth.call_overhead < 100us));
}

TEST_CASE("a row is fitted if its strategy is said to fit something, and only then",
          "[sim][calibrate]") {
  const StepModel law = transformer();
  const Fit truth = truth_of(1.7, 35us, 0.6);
  for (const Strategy strategy : all_strategies) {
    CAPTURE(name_of(strategy));
    const Fit found = fitted(law, {measured(law, truth, strategy)});
    CHECK((found.passes.forward != 1) == (fits_of(strategy) == Fits::computation ||
                                          fits_of(strategy) == Fits::computation_and_calls ||
                                          fits_of(strategy) == Fits::whole_step));
    CHECK((found.call_overhead != 0us) == (fits_of(strategy) == Fits::computation_and_calls));
    CHECK((found.interference != 1) == (fits_of(strategy) == Fits::interference));
  }
}

TEST_CASE("of a sharded row the step alone is fitted, whatever passes it gives",
          "[sim][calibrate]") {
  const StepModel law = transformer();
  MeasuredRow row = measured(law, truth_of(1.4, 0us, 1), Strategy::fsdp);
  const Fit plain = fitted(law, {row});
  CHECK(plain.passes.forward == within_a_percent(1.4));
  row.times.forward = row.times.backward = row.times.optimizer = row.step / 3;
  const Fit given = fitted(law, {row});
  CHECK(given.passes.forward == plain.passes.forward);
  CHECK(given.passes.backward == plain.passes.backward);
  CHECK(given.passes.optimizer == 1);
  REQUIRE(given.notes.size() == 1);
  CHECK_THAT(given.notes.front(), Catch::Contains("of the fsdp row the step alone is fitted"));
}

TEST_CASE("what was fitted predicts the rows it was fitted to", "[sim][calibrate]") {
  const StepModel law = transformer();
  const Fit truth = truth_of(1.3, 80us, 1.5);
  const std::vector<MeasuredRow> rows{measured(law, truth, Strategy::naive),
                                      measured(law, truth, Strategy::overlap)};
  const Fit found = fitted(law, rows);
  StepModel model = law;
  apply(found, model.costs);
  for (const MeasuredRow& row : rows) {
    const StepMetrics metrics = predict(model, timed::training_of(row.strategy)).metrics;
    CHECK(in_ms(metrics.step) == within_a_percent(in_ms(row.step)));
    CHECK(in_ms(metrics.communication) == within_a_percent(in_ms(row.communication->time)));
  }
}

TEST_CASE("an overhead may be negative, down to the law's latency", "[sim][calibrate]") {
  // Chain on a ring of 50 us per hop and 2 ranks: 100 us of latency a call, of which 40 go.
  const StepModel law = timed::model_of(timed::chain(6, 1ms, 2ms, {1'000'000}),
                                        timed::ring(2, 50us, gigabytes_per_second(10)));
  const Fit found = fitted(law, {measured(law, truth_of(1.2, -40us, 1), Strategy::naive)});
  CHECK(in_us(found.call_overhead) == within_a_percent(-40));
  CHECK(found.passes.backward == within_a_percent(1.2));
}

TEST_CASE("a timer that covered divisions leaves less to the all-reduces", "[sim][calibrate]") {
  // All-reduces and divisions of a naive step, drained before and after: 40 us more per call.
  const StepModel law = transformer();
  const Fit truth = truth_of(1.2, 40us, 1);
  MeasuredRow naive = measured(law, truth, Strategy::naive);
  StepModel model = law;
  apply(truth, model.costs);
  const Step step = predict(model, timed::training_of(Strategy::naive));
  std::optional<Instant> begin;
  Instant end{};
  const RankOfJob rank = step.rank();
  for (std::size_t t = 0; t < rank.times.size(); ++t) {
    const Operation operation = operation_of(rank.job, rank.program.tasks[t]);
    if (operation != Operation::all_reduce && operation != Operation::divide) continue;
    const TaskTimes& times = rank.times[t];
    begin = std::min(begin.value_or(times.start), times.start);
    end = std::max(end, times.end);
  }
  const Duration alone = naive.communication->time;
  naive.communication = MeasuredCommunication{end - *begin, {Covered::all_reduce, Covered::divide}};
  CHECK(naive.communication->time > alone);
  CHECK(in_us(fitted(law, {naive}).call_overhead) == within_a_percent(40));
  naive.communication->covers.clear();  // taken for all-reduces alone, it asks for more
  CHECK(fitted(law, {naive}).call_overhead > 41us);
}

TEST_CASE("a fit that came out odd is told", "[sim][calibrate]") {
  const StepModel law = transformer();
  const Fit less = fitted(law, {measured(law, truth_of(1, -20us, 1), Strategy::naive)});
  REQUIRE(less.notes.size() == 1);
  CHECK_THAT(less.notes[0], Catch::StartsWith("the naive row wants 20.0 us less per collective"));
  const Fit truth = truth_of(1, 0us, 3.5);
  const Fit strong =
      fitted(law, {measured(law, truth, Strategy::naive), measured(law, truth, Strategy::overlap)});
  REQUIRE(strong.notes.size() == 1);
  CHECK_THAT(strong.notes[0],
             Catch::StartsWith("the overlap row wants interference 3.5 times as strong"));
}

TEST_CASE("a row without communication is the first to tell about compute", "[sim][calibrate]") {
  // The naive row would ask for twice as much.
  const StepModel law = transformer();
  MeasuredRow naive = measured(law, truth_of(2, 0us, 1), Strategy::naive);
  const Fit found = fitted(law, {naive, measured(law, truth_of(1.4, 0us, 1), Strategy::none)});
  CHECK(found.passes.forward == within_a_percent(1.4));
}

TEST_CASE("measured passes are met by themselves", "[sim][calibrate]") {
  // Forward 12 ms where the law says 6, backward 9 where it says 12; the optimizer is not given.
  const StepModel law = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}),
                                        timed::ring(2, 10us, gigabytes_per_second(1)));
  MeasuredRow none;
  none.strategy = Strategy::none;
  none.step = 21ms;
  none.times = {12ms, 9ms, {}};
  const Fit found = fitted(law, {none});
  CHECK(found.passes.forward == Approx(2));
  CHECK(found.passes.backward == Approx(0.75));
  CHECK(found.passes.optimizer == 1);
  CHECK(found.call_overhead == 0us);
}

TEST_CASE("one measured pass leaves the other to the step", "[sim][calibrate]") {
  // Of 24 ms, forward has 12: the other 12 are backward, as the law says.
  const StepModel law = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}),
                                        timed::ring(2, 10us, gigabytes_per_second(1)));
  MeasuredRow none;
  none.strategy = Strategy::none;
  none.step = 24ms;
  none.times = {12ms, {}, {}};
  const Fit found = fitted(law, {none});
  CHECK(found.passes.forward == Approx(2));
  CHECK(found.passes.backward == within_a_percent(1));
}

TEST_CASE("with all of compute measured the rest of a naive step is communication",
          "[sim][calibrate]") {
  const StepModel law = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}),
                                        timed::ring(2, 10us, gigabytes_per_second(1)));
  MeasuredRow naive = measured(law, truth_of(1, 500us, 1), Strategy::naive);
  naive.times = {6ms, 12ms, {}};
  naive.communication.reset();
  CHECK(in_us(fitted(law, {naive}).call_overhead) == within_a_percent(500));
}

TEST_CASE("a naive row that says its passes and another communication than its step leaves is met",
          "[sim][calibrate]") {
  const StepModel law = timed::model_of(timed::chain(3, 2ms, 4ms, {1'000'000}),
                                        timed::ring(2, 10us, gigabytes_per_second(1)));
  MeasuredRow naive = measured(law, truth_of(1, 90us, 1), Strategy::naive);
  naive.times = {6ms, 12ms, {}};
  CHECK(fitted(law, {naive}).notes.empty());
  const Duration left = naive.communication->time;
  naive.communication->time = left / 2;
  const Fit found = fitted(law, {naive});
  CHECK(in_us(found.call_overhead) == within_a_percent(90));
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0] ==
        fmt::format("the naive row's step leaves {0:.1f} ms for communication beside forward and "
                    "backward, and the row says {1:.1f} ms: the step is met, and collectives take "
                    "the {0:.1f} ms",
                    in_ms(left), in_ms(left / 2)));
}

TEST_CASE("the first row of a strategy counts and others are left alone", "[sim][calibrate]") {
  const StepModel law = transformer();
  const Fit truth = truth_of(1.5, 50us, 1.2), other = truth_of(3, 500us, 3);
  const Fit found =
      fitted(law, {measured(law, other, Strategy::bucketed), measured(law, truth, Strategy::naive),
                   measured(law, truth, Strategy::overlap), measured(law, other, Strategy::naive),
                   measured(law, other, Strategy::overlap), measured(law, other, Strategy::flat)});
  CHECK(found.passes.forward == within_a_percent(1.5));
  CHECK(found.interference == within_a_percent(1.2));
}

TEST_CASE("without rows nothing changes", "[sim][calibrate]") {
  const Fit found = fit({});
  CHECK(found.passes.forward == 1);
  CHECK(found.passes.backward == 1);
  CHECK(found.passes.optimizer == 1);
  CHECK(found.call_overhead == 0us);
  CHECK(found.interference == 1);
}

TEST_CASE("what cannot be met is said", "[sim][calibrate]") {
  const StepModel law = transformer();
  MeasuredRow naive = measured(law, truth_of(1, 0us, 1), Strategy::naive);
  MeasuredRow overlap = measured(law, truth_of(1, 0us, 1), Strategy::overlap);
  SECTION("communication faster than the link") {
    naive.communication->time /= 10;
    CHECK(fitted(law, {naive}).notes.size() == 1);
  }
  SECTION("a naive step shorter than its communication") {
    naive.step = naive.communication->time / 2;
    CHECK(fitted(law, {naive}).notes.size() == 1);
  }
  SECTION("an overlapped step shorter than one without interference") {
    overlap.step /= 2;
    const Fit found = fitted(law, {naive, overlap});
    CHECK(found.notes.size() == 1);
    CHECK(found.interference < 0.01);
  }
}
