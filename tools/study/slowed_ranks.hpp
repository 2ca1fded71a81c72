#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "model/scenario/scenario.hpp"
#include "model/timeline/why.hpp"
#include "sim/predict/step.hpp"

namespace ddpsim {

/// Throws InputError if real ranks cannot be made to differ as the scenario's exceptions say.
void check_exceptions(const Scenario& scenario);

/// How `rank` carries out each job: an exception is made slower than it is. It pauses before
/// the kernel that would be reached on the scenario's own device, for this one's times are measured
/// meanwhile.
std::vector<RunOptions> paces_of(const Scenario& scenario, const std::vector<program::Job>& jobs,
                                 int rank);

/// The ranks, among so many, that have inputs and are no exceptions; all that have inputs, if there
/// are no others.
std::vector<int> typical_ranks(const Training& training, const Cluster& cluster, int ranks);

/// The rank for which one that is no exception waits longest, at the buckets' last all-reduces.
struct LateRank {
  std::string name;   ///< "rank 5"; "": one that is no exception either
  Duration waited{};  ///< in a step, all buckets together
};

/// How long is waited for ranks, by their names.
class Waits {
 public:
  /// `names`: of each rank of the timeline that the waits are of.
  void add(const std::vector<std::string>& names, const std::vector<WaitForRank>& of_step);

  /// The rank that was waited for longest, and for how long in each of so many steps.
  std::optional<LateRank> latest(std::size_t steps) const;

 private:
  std::map<std::string, Duration> waited_;
};

/// The rank that a predicted step waits for; nothing without exceptions or without buckets.
std::optional<LateRank> late_rank(const Scenario& scenario, const Step& step);

}  // namespace ddpsim
