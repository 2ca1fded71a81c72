#include "sim/predict/simulated_ranks.hpp"

#include <algorithm>

#include "model/base/index.hpp"
#include "sim/engine/price.hpp"

namespace ddpsim {
namespace {

/// A rank of the job that is as this one.
std::size_t rank_like(const SimulatedRank& simulated, const OrdinaryRanks& ordinary, int ranks) {
  if (simulated.exception) return at(simulated.rank);
  if (simulated.slowest) return at(ordinary.slowest());
  int rank = simulated.rank;
  while (rank + 1 < ranks && (!ordinary.has(rank) || rank == ordinary.slowest())) ++rank;
  return at(rank);
}

}  // namespace

std::vector<SimulatedRank> simulated_ranks(const std::vector<RankException>& exceptions,
                                           double slowest_rank, int ranks, int different) {
  std::vector<SimulatedRank> all(at(different));
  for (int rank = 0; rank < different; ++rank) all[at(rank)].rank = rank;
  const int alike = different - 1;  // from this rank on
  int left = ranks - alike;         // that are no exception, of those alike
  for (const RankException& exception : exceptions) {
    if (!exception.computes_otherwise()) continue;
    const int end = exception.rank + exception.ranks;
    const auto one_of_them = [&](int rank) {
      return SimulatedRank{rank, exception.compute, exception, false};
    };
    for (int rank = exception.rank; rank < std::min(end, alike); ++rank)
      all[at(rank)] = one_of_them(rank);
    const int first = std::max(exception.rank, alike);
    if (first >= end) continue;
    all.push_back(one_of_them(first));
    left -= end - first;
  }
  if (left == 0) all.erase(all.begin() + alike);
  if (slowest_rank <= 1 || ranks == 1) return all;
  if (different == 1 && left > 1) {
    all.push_back({0, slowest_rank, {}, true});
    return all;
  }
  const auto last = std::find_if(all.rbegin(), all.rend(),
                                 [](const SimulatedRank& rank) { return !rank.exception; });
  if (last != all.rend()) {
    last->compute = slowest_rank;
    last->slowest = true;
  }
  return all;
}

std::vector<SimulatedRank> simulated_ranks(const CostModel& costs, const program::Job& job) {
  return simulated_ranks(costs.exceptions, costs.slowest_rank, costs.ranks,
                         static_cast<int>(job.programs.size()));
}

std::vector<std::size_t> job_ranks(std::span<const SimulatedRank> ranks, const CostModel& costs,
                                   std::size_t all) {
  const OrdinaryRanks ordinary(costs, all);
  std::vector<std::size_t> result;
  for (const SimulatedRank& each : ranks)
    result.push_back(rank_like(each, ordinary, static_cast<int>(all)));
  return result;
}

}  // namespace ddpsim
