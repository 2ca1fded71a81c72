#pragma once

#include "model/cost/cost_model.hpp"
#include "sim/job/run_job.hpp"

namespace ddpsim {

/// A job, and what it costs each of its ranks.
struct PricedJob {
  program::Job job;
  JobCosts costs;
};

/// Prices a job on the ranks of a cluster, of which some may differ: those that are exceptions, and
/// the slowest of all others, which is the last of them. Ranks whose hosts pause have programs of
/// their own, in which one kernel is a piece of work of which the pause is a part of the host's
/// time.
PricedJob priced(const CostModel& model, program::Job job);

}  // namespace ddpsim
