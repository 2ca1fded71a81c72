#include "sim/predict/rank_draws.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <boost/math/distributions/normal.hpp>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/base/statistics.hpp"
#include "sim/predict/predict.hpp"

namespace ddpsim {
namespace {

/// The expected values of so many draws from the standard normal distribution, in order: Blom's
/// approximation (Statistical Estimates and Transformed Beta-Variables, 1958), stretched so that
/// the largest is exact.
std::vector<double> expected_in_order(int draws) {
  std::vector<double> expected(at(draws));
  if (draws == 1) return expected;
  const boost::math::normal normal;
  for (int i = 0; i < draws; ++i)
    expected[at(i)] = boost::math::quantile(normal, (i + 1 - 0.375) / (draws + 0.25));
  const double stretch = expected_largest(draws) / expected.back();
  for (double& each : expected) each *= stretch;
  return expected;
}

constexpr double fastest = 0.1;

}  // namespace

RankDraws::RankDraws(const RankSpread& spread, int ranks) : changing_(spread.changing) {
  if (ranks > most_ranks)
    throw std::invalid_argument(fmt::format(
        "each rank's pace is drawn by itself, of up to {} ranks; there are {}", most_ranks, ranks));
  lasting_ = expected_in_order(ranks);
  for (double& each : lasting_) each *= spread.lasting;
}

DrawnPace RankDraws::pace(std::uint64_t seed) const {
  boost::random::mt19937_64 random(seed);
  boost::random::normal_distribution<double> standard;
  double slowest = fastest;
  for (const double lasting : lasting_)
    slowest = std::max(slowest, 1 + lasting + changing_ * standard(random));
  return {std::min(1.0, slowest), slowest};
}

Duration working_length(CostModel& costs, const Schedule& schedule, const DrawnPace& pace) {
  const double slowest = std::exchange(costs.slowest_rank, pace.slowest / pace.typical);
  const Duration least_step = std::exchange(costs.least_step, Duration::zero());
  const Duration length = step_length(costs, schedule, [&](const Schedule& of, Costs& typical) {
    typical = slowed_down(of, std::move(typical), pace.typical);
  });
  costs.slowest_rank = slowest;
  costs.least_step = least_step;
  return length;
}

}  // namespace ddpsim
