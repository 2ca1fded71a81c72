// Steps in which the ranks' computing times are drawn (cluster.jitter).

#include "sim/predict/rank_draws.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "model/base/statistics.hpp"
#include "sim/predict/predict.hpp"
#include "tests/sim/predict/random_trainings.hpp"

namespace ddpsim::timed {
namespace {

using namespace std::chrono_literals;

std::vector<double> slowest_of(const RankDraws& draws, int count) {
  std::vector<double> all;
  for (int seed = 1; seed <= count; ++seed)
    all.push_back(draws.pace(static_cast<std::uint64_t>(seed)).slowest);
  return all;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Three layers of 2 ms forward and 4 ms backward, 1 MB of gradient each, on a ring of 1 GB/s.
StepModel layers(int ranks) {
  StepModel model =
      model_of(chain(3, 2ms, 4ms, {1'000'000}), ring(ranks, 0us, gigabytes_per_second(1)));
  free_copies(model);
  return model;
}

}  // namespace

TEST_CASE("one rank's steps have the spread that is asked for", "[sim][jitter]") {
  const std::vector<double> paces = slowest_of(RankDraws({0.1, 0.02}, 1), 10'000);
  const double average = mean(paces);
  double squares = 0;
  for (const double pace : paces) squares += (pace - average) * (pace - average);
  // Standard errors of 10,000 draws: 0.0002 of the mean, 0.00014 of the deviation. A rank by itself
  // differs from nobody lastingly.
  CHECK(average == Approx(1).margin(0.001));
  CHECK(std::sqrt(squares / 9'999) == Approx(0.02).margin(0.0006));
  CHECK(quantile(paces, 0.9) == Approx(1 + 1.2816 * 0.02).margin(0.001));
}

TEST_CASE("the slowest of several ranks is as late in the mean as CostModel expects",
          "[sim][jitter]") {
  for (const int ranks : {2, 8, 64})
    CHECK(mean(slowest_of(RankDraws({0, 0.02}, ranks), 10'000)) ==
          Approx(1 + 0.02 * expected_largest(ranks)).margin(0.001));
  // What lasts does so in every step.
  for (const double pace : slowest_of(RankDraws({0.03, 0}, 8), 20))
    CHECK(pace == Approx(1 + 0.03 * expected_largest(8)));
  // Both: the mean lies above what either makes, and not above the sum.
  const double both = mean(slowest_of(RankDraws({0.03, 0.02}, 8), 10'000));
  CHECK(both == Approx(1 + std::hypot(0.03, 0.02) * expected_largest(8)).margin(0.004));
}

TEST_CASE("a seed draws the same paces wherever it is asked", "[sim][jitter]") {
  const RankDraws draws({0.01, 0.02}, 8), again({0.01, 0.02}, 8);
  CHECK(draws.pace(7).slowest == again.pace(7).slowest);
  CHECK(draws.pace(7).slowest != draws.pace(8).slowest);
  // Ranks are no faster than ten times, however much they change.
  for (const double pace : slowest_of(RankDraws({0, 5}, 1), 100)) CHECK(pace >= 0.1);
  CHECK_THROWS_WITH(RankDraws({0, 0.1}, (1 << 20) + 1), Catch::Contains("of up to 1048576 ranks"));
}

TEST_CASE("an exception changes from step to step as all ranks do", "[sim][jitter]") {
  RankException slow;
  slow.rank = 1;
  slow.compute = 1.5;
  const RankDraws draws({0.03, 0.02}, 4, std::vector{slow});
  std::vector<double> theirs, others;
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
    const DrawnPace pace = draws.pace(seed);
    theirs.push_back(pace.exceptions.at(0));
    others.push_back(pace.slowest);
  }
  CHECK(mean(theirs) == Approx(1.5).margin(0.002));
  CHECK(quantile(theirs, 0.9) == Approx(1.5 * (1 + 1.2816 * 0.02)).margin(0.002));
  // The three others differ among one another: the slowest as that of all four.
  CHECK(mean(others) > 1 + 0.03 * expected_largest(4));
  for (const double pace : RankDraws({0.03, 0}, 4, std::vector{slow}).pace(3).exceptions)
    CHECK(pace == 1.5);
  CHECK(RankDraws({0.03, 0}, 4, std::vector{slow}).pace(3).slowest ==
        Approx(1 + 0.03 * expected_largest(4)));
  // Two ranks that are one exception: the slower of them counts.
  slow.ranks = 2;
  std::vector<double> of_two;
  const RankDraws both({0, 0.02}, 4, std::vector{slow});
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed)
    of_two.push_back(both.pace(seed).exceptions.at(0));
  CHECK(mean(of_two) == Approx(1.5 * (1 + 0.02 * expected_largest(2))).margin(0.002));
}

TEST_CASE("a step with an exception is as long as its drawn pace", "[sim][jitter]") {
  StepModel model = layers(4);
  RankException slow;
  slow.rank = 2;
  slow.compute = 1.5;
  model.costs.exceptions = {slow};
  const PlannedStep none = plan_step(model.works, training_of(Strategy::none));
  CHECK(working_length(model.costs, none, {1, 1.1, {2}}) == 36ms);
  CHECK(working_length(model.costs, none, {1, 2.5, {2}}) == 45ms);
  // All are twice as fast as by the costs, and the exception is as slow as these say.
  CHECK(working_length(model.costs, none, {0.5, 0.5, {1}}) == 18ms);
}

TEST_CASE("a rank by itself is longer and shorter", "[sim][jitter]") {
  StepModel model = layers(1);
  const PlannedStep none = plan_step(model.works, training_of(Strategy::none));
  const RankDraws draws({0.1, 0.05}, 1);
  std::vector<double> lengths;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed)
    lengths.push_back(in_ms(working_length(model.costs, none, draws.pace(seed))));
  CHECK(quantile(lengths, 0.5) == Approx(18).margin(0.1));
  CHECK(quantile(lengths, 0.1) == Approx(18 * (1 - 1.2816 * 0.05)).margin(0.15));
  CHECK(quantile(lengths, 0.9) == Approx(18 * (1 + 1.2816 * 0.05)).margin(0.15));
}

TEST_CASE("a step of a drawn pace is the step of such a slowest rank", "[sim][jitter]") {
  StepModel model = layers(4);
  for (const Strategy strategy : {Strategy::none, Strategy::naive, Strategy::overlap}) {
    const PlannedStep planned = plan_step(model.works, training_of(strategy));
    model.costs.slowest_rank = 1.25;
    const Duration expected = step_length(model.costs, planned);
    model.costs.slowest_rank = 1;
    const Duration even = step_length(model.costs, planned);
    CHECK(working_length(model.costs, planned, {1, 1.25, {}}) == expected);
    CHECK(working_length(model.costs, planned, {1, 1, {}}) == even);
  }
  // All ranks at half the time: 18 ms of computation become 9; three all-reduces of 1.5 ms stay.
  const PlannedStep naive = plan_step(model.works, training_of(Strategy::naive));
  CHECK(working_length(model.costs, naive, {0.5, 0.5, {}}) == 9ms + 3 * 1500us);
}

}  // namespace ddpsim::timed
