#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/cost/cost_model.hpp"
#include "sim/engine/simulate.hpp"

namespace ddpsim {

/// Changes what works cost a typical rank.
using CostChange = std::function<void(const std::vector<Work>& works, Costs& costs)>;

/// The rank that is the slowest of those that are no exceptions, which is the last of them; nobody:
/// no rank is.
int slowest_rank_of(const CostModel& model, std::size_t ranks);

/// What a job costs the ranks of a cluster, of which some may differ: those that are exceptions,
/// and the slowest of all others. `begins`: the first tasks of the steps that the job joins, in
/// each of which a rank that pauses does so; none: it is one step.
JobCosts price(const CostModel& model, const program::Job& job, const CostChange& change = {},
               std::span<const std::uint32_t> begins = {});

/// What a job costs if all of its ranks are as slow as the slowest.
JobCosts price_as_slowest(const CostModel& model, const program::Job& job);

/// The sum of all tasks' host and work times of a rank, in seconds: what a step cannot be shorter
/// than, on one stream, and far beyond which its length never is.
double total_seconds(const program::Job& job, const JobCosts& costs, std::size_t rank);

}  // namespace ddpsim
