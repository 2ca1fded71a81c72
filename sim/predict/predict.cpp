#include "sim/predict/predict.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "model/timeline/metrics.hpp"
#include "sim/predict/fit_times.hpp"
#include "sim/predict/simulated_ranks.hpp"

namespace ddpsim {
namespace {

JobTimeline checked_timeline(const PlannedStep& planned, const JobCosts& costs) {
  const program::Job& job = planned.job;
  for (std::size_t rank = 0; rank < job.ranks(); ++rank)
    if (rank == 0 || costs.of_rank[rank] != costs.of_rank[rank - 1] ||
        job.program_of[rank] != job.program_of[rank - 1])
      check_length(total_seconds(job, costs, rank));
  return simulate(job, planned.plans, costs);
}

/// How long a step whose last task ends there waits for its next batches.
Duration input_wait(Instant end, const CostModel& model) {
  return std::max(Duration::zero(), Instant{model.least_step} - end);
}

/// From its beginning until the next one's batches are there.
Duration length(const JobTimeline& timeline, const CostModel& model) {
  return (timeline.end + input_wait(timeline.end, model)).time_since_epoch();
}

/// For who asks for lengths alone.
JobTimeline timeline_for_lengths(const CostModel& model, const PlannedStep& planned) {
  const program::Job& job = planned.job;
  const bool alone = slowest_rank_decides(model) && job.programs.size() == 1;
  return checked_timeline(planned, alone ? price_as_slowest(model, job) : price(model, job));
}

}  // namespace

void check_length(double seconds) {
  if (seconds > in_seconds(longest_simulated))
    throw std::invalid_argument(
        fmt::format("a step of {:.3g} hours is beyond what is simulated ({} hours): check batch, "
                    "bandwidth and latency",
                    seconds / 3600, longest_simulated.count()));
}

bool slowest_rank_decides(const CostModel& costs) {
  return costs.slowest_rank > 1 && costs.ranks > 1 && costs.exceptions.empty() &&
         !costs.synchronous && !costs.interference.delays_launches();
}

Step predict(const CostModel& costs, const Training& training,
             std::shared_ptr<const PlannedStep> planned) {
  const program::Job& job = planned->job;
  Step step{.training = training, .planned = planned};
  step.times = checked_timeline(*planned, price(costs, job));
  const Duration wait = input_wait(step.times.end, costs);
  step.times.end += wait;
  step.ranks = job_ranks(simulated_ranks(costs, job), costs, job.ranks());
  step.metrics = measure(job, step.times, step.ranks.front());
  step.metrics.input_wait = wait;
  if (wait > Duration::zero()) step.metrics.bound = Bound::input;
  return step;
}

Duration step_length(const CostModel& costs, const PlannedStep& planned) {
  return length(timeline_for_lengths(costs, planned), costs);
}

Duration step_length(const CostModel& costs, const PlannedStep& planned, const CostChange& change) {
  return length(checked_timeline(planned, price(costs, planned.job, change)), costs);
}

Duration communication_length(const CostModel& costs, const PlannedStep& planned) {
  return communication_of(RankOfJob(planned.job, timeline_for_lengths(costs, planned), 0));
}

Step predict(const StepModel& model, const Training& training) {
  return predict(model.costs, training,
                 std::make_shared<PlannedStep>(plan_step(model.works, training)));
}

StepModel model_of(const Scenario& scenario) {
  StepModel model(scenario.workload, scenario.cluster, scenario.optimizer);
  Training one_pass = scenario.training;
  one_pass.micro_batches = 1;  // of which the workload's own times are
  fit_times(model, one_pass, scenario.times);
  model.costs.least_step = scenario.training.least_step(model.costs.ranks_per_node);
  return model;
}

}  // namespace ddpsim
