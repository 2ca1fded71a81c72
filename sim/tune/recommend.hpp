#pragma once

#include <vector>

#include "sim/tune/bucket_steps.hpp"
#include "sim/tune/tune.hpp"

namespace ddpsim {

/// Which of `candidates` (caps, none too large, at least one) to deploy in place of `standard`,
/// which is DDP's default, or what the scenario has where that is made by another rule.
///
/// For less memory `standard` takes part, and is kept where no candidate has a smaller largest
/// bucket. Else, without uncertainty, the one that is best by the objective. With it, all-reduces
/// and everything that computes are taken to be as told, faster and slower, in every combination;
/// in each the regret of a cap is its step over the shortest of all candidates and, if it is
/// allowed, the default, less 1. The choice has the least greatest regret. Steps within 0.1 % count
/// as equal: there those win that pay, and of them the fewest buckets, which pay least for what no
/// prediction holds; where that is not the shortest step, the roundest cap of as many buckets is
/// taken whose step, in hundredths of a ms, and regret, in tenths of a per cent, are no longer. A
/// cap pays if it gains more than `noise`, and something in every combination. `steps` are those of
/// the candidates, at `costs`. The choice, and each of `beside`, get their steps with errors.
Advice recommend(const BucketSteps& steps, const CostModel& costs, const TuneOptions& options,
                 const std::vector<Choice>& candidates, const Choice& standard,
                 bool standard_allowed, const std::vector<Choice*>& beside);

}  // namespace ddpsim
