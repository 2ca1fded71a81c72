#include "tools/kineto/shown_ranks.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/cost/cost_model.hpp"
#include "sim/predict/simulated_ranks.hpp"

namespace ddpsim {
namespace {

/// The ranks of a step some of which are exceptions.
class ExceptionalRanks {
 public:
  ExceptionalRanks(const Scenario& scenario, const Step& step)
      : ranks_(scenario.cluster.ranks()),
        different_(static_cast<int>(step.job().programs.size())),
        simulated_(simulated_ranks(scenario.cluster.exceptions,
                                   slowest_rank(scenario.cluster, scenario.workload.step_spread),
                                   ranks_, different_)) {
    while (first_ < ranks_ - 1 && is_exception(first_)) ++first_;
    last_ = ranks_ - 1;
    while (last_ > first_ && is_exception(last_)) --last_;
  }

  /// One of each kind, in their order in the job.
  std::vector<ShownRank> that_differ() const {
    std::vector<ShownRank> shown;
    for (const SimulatedRank& each : simulated_) {
      const bool of_others = different_ == 1 && !each.exception;
      const int rank = !of_others ? each.rank : each.slowest ? last_ : first_;
      std::string more;
      if (each.exception && each.exception->ranks > 1 && rank >= different_ - 1)
        more = fmt::format(" (and all of node {})", each.exception->node.value_or(0));
      else if (of_others && last_ == first_)
        more = "";
      else if (of_others && !each.slowest)
        more = " (and all others)";
      else if (each.slowest)
        more = " (the slowest of the others)";
      shown.push_back({rank, like(rank), fmt::format("rank {}{}", rank, more)});
    }
    std::sort(shown.begin(), shown.end(),
              [](const ShownRank& a, const ShownRank& b) { return a.rank < b.rank; });
    return shown;
  }

  std::vector<ShownRank> all() const {
    std::vector<ShownRank> shown;
    for (int rank = 0; rank < ranks_; ++rank)
      shown.push_back({rank, like(rank), fmt::format("rank {}", rank)});
    return shown;
  }

 private:
  /// Where the simulated rank is that stands for an exception; none.
  std::optional<int> exception_at(int rank) const {
    for (std::size_t s = 0; s < simulated_.size(); ++s) {
      const SimulatedRank& each = simulated_[s];
      if (!each.exception || rank < each.exception->rank ||
          rank >= each.exception->rank + each.exception->ranks)
        continue;
      if (rank < different_ - 1 ? each.rank == rank : each.rank >= different_ - 1)
        return static_cast<int>(s);
    }
    return std::nullopt;
  }
  bool is_exception(int rank) const { return exception_at(rank).has_value(); }

  int like(int rank) const {
    if (const auto exception = exception_at(rank)) return *exception;
    if (different_ > 1) return std::min(rank, different_ - 1);
    const bool slowest = rank == last_ && last_ > first_ && simulated_.back().slowest;
    return slowest ? static_cast<int>(simulated_.size()) - 1 : 0;
  }

  int ranks_, different_;
  std::vector<SimulatedRank> simulated_;
  int first_ = 0, last_ = 0;  ///< of those that are no exception
};

}  // namespace

ShownRanks::ShownRanks(const Scenario& scenario, const Step& step, TraceRanks which)
    : simulated_(static_cast<int>(step.ranks.size())),
      all_(std::max(simulated_, scenario.cluster.ranks())),
      slowest_last_(simulated_ == 2 && all_ > 2 &&
                    slowest_rank(scenario.cluster, scenario.workload.step_spread) > 1),
      count_(which == TraceRanks::all ? all_ : simulated_) {
  if (scenario.cluster.exceptions.empty() || step.times.measured) return;
  const std::size_t tasks = std::max<std::size_t>(1, step.rank().program.tasks.size());
  if (which == TraceRanks::all && at(all_) > most_traced_tasks / tasks) return;  // to be refused
  const ExceptionalRanks ranks(scenario, step);
  some_ = which == TraceRanks::all ? ranks.all() : ranks.that_differ();
  count_ = static_cast<int>(some_.size());
}

int ShownRanks::rank(int index) const {
  if (!some_.empty()) return some_[at(index)].rank;
  return slowest_last_ && index + 1 == count_ ? all_ - 1 : index;
}

int ShownRanks::like(int index) const {
  if (!some_.empty()) return some_[at(index)].like;
  if (slowest_last_) return index + 1 == count_ ? 1 : 0;
  return std::min(index, simulated_ - 1);
}

std::string ShownRanks::name(int index) const {
  if (!some_.empty()) return some_[at(index)].name;
  if (slowest_last_ && index + 1 == count_)
    return fmt::format("rank {} (the slowest of {})", rank(index), all_);
  const int stands_for = slowest_last_ ? count_ - 2 : count_ - 1;
  const int last = slowest_last_ ? all_ - 2 : all_ - 1;
  if (index != stands_for || rank(index) == last) return fmt::format("rank {}", rank(index));
  return fmt::format("rank {} (and all up to {})", rank(index), last);
}

}  // namespace ddpsim
