#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/cost/cost_model.hpp"
#include "sim/engine/simulate.hpp"

namespace ddpsim {

/// Changes what works cost a typical rank.
using CostChange = std::function<void(const std::vector<Work>& works, Costs& costs)>;

/// Which ranks are no exceptions in how they compute.
class OrdinaryRanks {
 public:
  OrdinaryRanks(const CostModel& model, std::size_t ranks);

  bool has(int rank) const { return ordinary_.at(static_cast<std::size_t>(rank)); }
  /// The last of them, where one is slower than the others; nobody: none is.
  int slowest() const { return slowest_; }

 private:
  std::vector<bool> ordinary_;
  int slowest_ = nobody;
};

/// What a job costs the ranks of a cluster, of which some may differ: those that are exceptions,
/// and the slowest of all others. `begins`: the first tasks of the steps that the job joins, in
/// each of which a rank that pauses does so; none: it is one step. Throws std::invalid_argument
/// where too many kinds of rank differ.
JobCosts price(const CostModel& model, const program::Job& job, const CostChange& change = {},
               std::span<const std::uint32_t> begins = {});

/// What a job costs if all of its ranks are as slow as the slowest.
JobCosts price_as_slowest(const CostModel& model, const program::Job& job);

/// The sum of all tasks' host and work times of a rank, in seconds: what a step cannot be shorter
/// than, on one stream, and far beyond which its length never is.
double total_seconds(const program::Job& job, const JobCosts& costs, std::size_t rank);

}  // namespace ddpsim
