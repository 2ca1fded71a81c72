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

RankDraws::RankDraws(const RankSpread& spread, int ranks, std::span<const RankException> exceptions)
    : changing_(spread.changing) {
  if (ranks > most_ranks)
    throw std::invalid_argument(fmt::format(
        "each rank's pace is drawn by itself, of up to {} ranks; there are {}", most_ranks, ranks));
  exception_of_.assign(at(ranks), nobody);
  for (const RankException& exception : exceptions) {
    const int end = std::min(exception.rank + exception.ranks, ranks);
    for (int rank = exception.rank; rank < end; ++rank)
      exception_of_[at(rank)] = static_cast<std::int32_t>(factors_.size());
    factors_.push_back(exception.compute);
  }
  ordinary_ = static_cast<int>(std::ranges::count(exception_of_, nobody));
  const std::vector<double> expected = expected_in_order(ranks);
  lasting_.resize(at(ranks));
  auto next = expected.end() - ordinary_;
  for (std::size_t rank = 0; rank < lasting_.size(); ++rank)
    if (exception_of_[rank] == nobody) lasting_[rank] = spread.lasting * *next++;
}

DrawnPace RankDraws::pace(std::uint64_t seed) const {
  boost::random::mt19937_64 random(seed);
  boost::random::normal_distribution<double> standard;
  DrawnPace pace{1, fastest, std::vector<double>(factors_.size(), fastest)};
  for (std::size_t rank = 0; rank < lasting_.size(); ++rank) {
    const double changed = 1 + changing_ * standard(random);
    const std::int32_t exception = exception_of_[rank];
    double& slowest = exception == nobody ? pace.slowest : pace.exceptions[at(exception)];
    slowest = std::max(slowest, exception == nobody ? changed + lasting_[rank]
                                                    : changed * factors_[at(exception)]);
  }
  pace.typical = ordinary_ == 1 ? pace.slowest : std::min(1.0, pace.slowest);
  return pace;
}

Duration working_length(CostModel& costs, const PlannedStep& planned, const DrawnPace& pace) {
  costs.slowest_rank = pace.slowest / pace.typical;
  costs.least_step = Duration::zero();
  for (std::size_t i = 0; i < costs.exceptions.size(); ++i)
    costs.exceptions[i].compute = pace.exceptions.at(i) / pace.typical;
  return step_length(costs, planned, [&](const std::vector<Work>& works, Costs& typical) {
    typical = slowed_down(works, costs.synchronous, std::move(typical), pace.typical);
  });
}

}  // namespace ddpsim
