#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/cost/cost_model.hpp"
#include "model/program/job.hpp"

namespace ddpsim {

/// A rank that a simulation tells apart from the others; it may stand for several that are alike.
struct SimulatedRank {
  int rank = 0;                              ///< whose work it has
  double compute = 1;                        ///< its computation takes so many times as long
  std::optional<RankException> exception{};  ///< that it stands for
  bool slowest = false;                      ///< of those that are no exception
};

/// The ranks of a job that differ, where the first `different` of them have different work and all
/// others that of the last of these (a program each).
///
/// Where all have the same work the first is a typical rank, which is no exception even if rank 0
/// is one; then come the exceptions, a rank for each, and then the slowest of the others, if there
/// is one. Where a single rank is no exception that one is the slowest, and the first. Where they
/// have different work rank r is at r, exception or not. Behind these come the exceptions among the
/// ranks with the same work. The slowest is the last that is no exception, which has the least
/// work.
std::vector<SimulatedRank> simulated_ranks(const std::vector<RankException>& exceptions,
                                           double slowest_rank, int ranks, int different);
std::vector<SimulatedRank> simulated_ranks(const CostModel& costs, const program::Job& job);

/// For each of `ranks` one of the job's that is as it.
std::vector<std::size_t> job_ranks(std::span<const SimulatedRank> ranks, const CostModel& costs,
                                   std::size_t all);

}  // namespace ddpsim
