#include "sim/predict/predict.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "model/ddp/build_schedule.hpp"
#include "model/schedule/variants.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/predict/fit_times.hpp"
#include "sim/predict/simulated_ranks.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_tasks = 10'000'000;  // of all ranks together
constexpr std::chrono::hours longest_step{6};

/// What the schedule's work costs a typical rank.
Costs price(const CostModel& model, const Schedule& schedule, const CostChange& change) {
  Costs costs = model.price(schedule);
  if (change) change(schedule, costs);
  return costs;
}

void check_number(const std::vector<SimulatedRank>& ranks, const Schedule& schedule) {
  if (schedule.tasks.size() * ranks.size() <= most_tasks) return;
  throw std::invalid_argument(
      fmt::format("a step of {} ranks with different work of {} tasks each is beyond what is "
                  "simulated ({} tasks): take larger buckets",
                  ranks.size(), schedule.tasks.size(), most_tasks));
}

/// `begins`: the first task of each step; none: it is one.
void add_pauses(Schedule& schedule, Costs& costs, const RankException& exception,
                std::span<const std::uint32_t> begins) {
  const std::size_t tasks = schedule.tasks.size();
  if (begins.empty()) add_pause(schedule, costs, exception.pause, exception.at, 0, tasks);
  for (std::size_t step = 0; step < begins.size(); ++step)
    add_pause(schedule, costs, exception.pause, exception.at, begins[step],
              step + 1 < begins.size() ? begins[step + 1] : tasks);
}

/// Simulates every rank that differs from the others.
Timeline simulate_different(const CostModel& model, const Schedule& schedule, const Costs& typical,
                            const std::vector<SimulatedRank>& ranks, const CostChange& change,
                            std::span<const std::uint32_t> begins) {
  check_number(ranks, schedule);
  const bool owners = different_ranks(schedule, model.ranks) > 1;
  std::vector<Schedule> schedules;  // of ranks that have one of their own
  std::vector<Costs> costs;
  std::vector<RankPlan> plans;
  schedules.reserve(ranks.size());
  costs.reserve(ranks.size());
  for (const SimulatedRank& rank : ranks) {
    const bool pauses = rank.exception && rank.exception->pause > Duration::zero();
    if (owners)
      schedules.push_back(schedule_of_rank(schedule, rank.rank));
    else if (pauses)
      schedules.push_back(schedule);
    const Schedule& its = owners || pauses ? schedules.back() : schedule;
    costs.push_back(owners ? price(model, its, change) : typical);
    if (rank.compute != 1)
      costs.back() = slowed_down(its.works, its.synchronous, std::move(costs.back()), rank.compute);
    if (pauses) add_pauses(schedules.back(), costs.back(), *rank.exception, begins);
    if (rank.exception && begins.empty()) check_length(its, costs.back());
    plans.push_back({&its, &costs.back()});
  }
  return simulate(plans);
}

/// `typical`: what the schedule's work costs a typical rank.
Timeline simulate_priced(const CostModel& model, const Schedule& schedule, const Costs& typical,
                         const CostChange& change = {},
                         std::span<const std::uint32_t> begins = {}) {
  const std::vector<SimulatedRank> ranks = simulated_ranks(model, schedule);
  if (ranks.size() > 1) return simulate_different(model, schedule, typical, ranks, change, begins);
  return simulate(schedule, typical);
}

}  // namespace

void check_length(const Schedule& schedule, const Costs& costs) {
  const double seconds = total_seconds(schedule, costs);
  if (seconds > in_seconds(longest_step))
    throw std::invalid_argument(
        fmt::format("a step of {:.3g} hours is beyond what is simulated ({} hours): check batch, "
                    "bandwidth and latency",
                    seconds / 3600, longest_step.count()));
}

namespace {

/// How long a step that ends with this timeline's last task waits for its next batches.
Duration input_wait(const Timeline& timeline, const CostModel& costs) {
  return std::max(Duration::zero(), Instant{costs.least_step} - timeline.end);
}

/// The next step begins once its batches are there.
Timeline after_input(Timeline timeline, const CostModel& costs) {
  timeline.end += input_wait(timeline, costs);
  return timeline;
}

Timeline checked_timeline(const CostModel& costs, const Schedule& schedule,
                          const CostChange& change = {}) {
  const Costs typical = price(costs, schedule, change);
  check_length(schedule, typical);
  return simulate_priced(costs, schedule, typical, change);
}

/// For who asks for lengths alone.
Timeline timeline_for_lengths(const CostModel& costs, const Schedule& schedule) {
  if (!slowest_rank_decides(costs) || different_ranks(schedule, costs.ranks) > 1)
    return after_input(checked_timeline(costs, schedule), costs);
  Costs typical = costs.price(schedule);
  check_length(schedule, typical);
  return after_input(simulate(schedule, slowed_down(schedule.works, schedule.synchronous,
                                                    std::move(typical), costs.slowest_rank)),
                     costs);
}

}  // namespace

bool slowest_rank_decides(const CostModel& costs) {
  return costs.slowest_rank > 1 && costs.ranks > 1 && costs.exceptions.empty() &&
         !costs.synchronous && !costs.interference.delays_launches();
}

Timeline simulate_ranks(const CostModel& costs, const Schedule& schedule,
                        std::span<const std::uint32_t> begins) {
  return simulate_priced(costs, schedule, costs.price(schedule), {}, begins);
}

Step predict(const CostModel& costs, const Training& training, Schedule schedule) {
  Step step{training, std::move(schedule), {}, {}};
  step.timeline = checked_timeline(costs, step.schedule);
  const Duration wait = input_wait(step.timeline, costs);
  step.timeline.end += wait;
  if (different_ranks(step.schedule, costs.ranks) > 1)
    step.schedule = schedule_of_rank(std::move(step.schedule), 0);
  step.metrics = measure(step.schedule, step.timeline);
  step.metrics.input_wait = wait;
  if (wait > Duration::zero()) step.metrics.bound = Bound::input;
  return step;
}

Duration step_length(const CostModel& costs, const Schedule& schedule) {
  return timeline_for_lengths(costs, schedule).end.time_since_epoch();
}

Duration step_length(const CostModel& costs, const Schedule& schedule, const CostChange& change) {
  return after_input(checked_timeline(costs, schedule, change), costs).end.time_since_epoch();
}

Duration communication_length(const CostModel& costs, const Schedule& schedule) {
  const Timeline timeline = timeline_for_lengths(costs, schedule);
  if (different_ranks(schedule, costs.ranks) > 1)
    return communication_of(schedule_of_rank(schedule, 0), timeline);
  return communication_of(schedule, timeline);
}

Step predict(const StepModel& model, const Training& training) {
  return predict(model.costs, training, build_schedule(model.works, training));
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
