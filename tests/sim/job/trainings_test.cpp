// Steps of random trainings as jobs: the engine of jobs gives each task the times that the engine
// of schedules gives it.
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/cost/cost_model.hpp"
#include "model/ddp/job_of_step.hpp"
#include "model/program/text.hpp"
#include "model/schedule/variants.hpp"
#include "model/timeline/job_metrics.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/job/priced_job.hpp"
#include "sim/predict/predict.hpp"
#include "sim/predict/simulated_ranks.hpp"
#include "tests/model/ddp/random_trainings.hpp"
#include "tests/sim/predict/random_exceptions.hpp"

namespace ddpsim {
namespace {

/// A step of any training; one in `owned` has owners of parameters, which ZeRO's comm hooks have.
drawn::RandomStep random_step(drawn::Draw& draw, int owned) {
  return drawn::random_step_of(draw, [&](drawn::Draw& of, Training& each) {
    if (!of.one_in(owned)) return;
    each.strategy = Strategy::bucketed;
    each.comm_hook = {};
    each.comm_hook.kind = CommHookKind::zero_step;
    each.iteration = 0;
  });
}

/// The first task of the schedule that takes other times as one of the rank's program: "" if there
/// is none.
std::string difference_at(std::size_t rank, const program::Job& job, const JobTimeline& timeline,
                          const std::vector<TaskTimes>& expected) {
  const program::Program& program = job.programs[job.program_of[rank]];
  const std::vector<TaskTimes>& times = timeline.classes[timeline.class_of[rank]];
  for (std::size_t place = 0; place < program.tasks.size(); ++place) {
    const std::uint32_t task = program.tasks[place].deed;
    if (task >= expected.size()) continue;  // a host's wait, which is part of a task
    const TaskTimes &at = times[place], &as = expected[task];
    if (at.start == as.start && at.end == as.end && at.enqueued == as.enqueued) continue;
    return fmt::format("rank {}, task {}: {} to {} ps, not {} to {}", rank, task,
                       at.start.time_since_epoch().count(), at.end.time_since_epoch().count(),
                       as.start.time_since_epoch().count(), as.end.time_since_epoch().count());
  }
  return {};
}

/// The first figure that differs: "" if there is none.
std::string difference_of(const StepMetrics& found, const StepMetrics& expected) {
  const auto differ = [](const char* what, Duration is, Duration should) {
    return is == should ? std::string()
                        : fmt::format("{}: {} ps, not {}", what, is.count(), should.count());
  };
  for (const auto& each : {differ("step", found.step, expected.step),
                           differ("forward", found.forward, expected.forward),
                           differ("backward", found.backward, expected.backward),
                           differ("optimizer", found.optimizer, expected.optimizer),
                           differ("communication", found.communication, expected.communication),
                           differ("comm hook", found.comm_hook, expected.comm_hook)})
    if (!each.empty()) return each;
  if (found.collectives != expected.collectives || found.wire != expected.wire)
    return fmt::format("{} collectives of {}, not {} of {}", found.collectives,
                       to_string(found.wire), expected.collectives, to_string(expected.wire));
  if (found.bound != expected.bound)
    return fmt::format("bound: {}, not {}", name_of(found.bound), name_of(expected.bound));
  for (std::size_t b = 0; b < expected.buckets.size(); ++b) {
    const BucketTimes should = expected.buckets[b],
                      is = b < found.buckets.size() ? found.buckets[b] : BucketTimes{};
    if (is.ready != should.ready || is.start != should.start || is.end != should.end ||
        is.exposed != should.exposed || is.host_copies != should.host_copies)
      return fmt::format("bucket {}: exposed {} ps, not {}", b, is.exposed.count(),
                         should.exposed.count());
  }
  return {};
}

/// A step as its ranks do it, by both engines.
class BothWays {
 public:
  BothWays(const drawn::RandomStep& step, drawn::Draw& draw)
      : schedule_(with_all_inputs(step.schedule)), job_(program::job_of(schedule_, step.works)) {
    const CostModel model(step.cluster);
    // One rank may be slower. (Where a collective is of a part of the ranks the engines differ.)
    const int slow = draw.one_in(2) && job_.communicators.size() < 2
                         ? draw.between(0, schedule_.ranks - 1)
                         : nobody;
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      schedules_.push_back(schedule_of_rank(schedule_, rank));
      costs_.push_back(model.price(schedules_.back()));
      job_costs_.kinds.push_back(model.price(job_.works, job_.passes));
      if (rank == slow)
        for (Costs* costs : {&costs_.back(), &job_costs_.kinds.back()})
          *costs = slowed_down(job_.works, schedule_.synchronous, std::move(*costs), 1.3);
      job_costs_.of_rank.push_back(static_cast<std::uint16_t>(rank));
    }
  }

  const program::Job& job() const { return job_; }

  /// The first task that takes other times as one of a job: "" if there is none.
  std::string difference() const {
    std::vector<RankPlan> plans;
    for (std::size_t rank = 0; rank < costs_.size(); ++rank)
      plans.push_back({&schedules_[rank], &costs_[rank]});
    const Timeline expected = simulate(plans);
    const JobTimeline timeline = simulate(job_, job_costs_);
    for (std::size_t rank = 0; rank < plans.size(); ++rank)
      if (std::string found = difference_at(rank, job_, timeline, expected.ranks[rank]);
          !found.empty())
        return found;
    // (A timeline of schedules has the details of the first rank alone.)
    return difference_of(measure(job_, timeline, 0), measure(schedules_[0], expected, 0));
  }

 private:
  Schedule schedule_;
  program::Job job_;
  std::vector<Schedule> schedules_;  // [rank]
  std::vector<Costs> costs_;         // [rank]
  JobCosts job_costs_;
};

}  // namespace

TEST_CASE("steps of trainings take the same times as jobs, to the tick", "[sim][run_job]") {
  drawn::Draw draw(73);
  int owners = 0;
  for (int round = 0; round < 400; ++round) {
    const drawn::RandomStep step = random_step(draw, 6);
    const BothWays both(step, draw);
    owners += both.job().programs.size() > 1 ? 1 : 0;
    CAPTURE(round, name_of(step.training.strategy), program::text_of(both.job()));
    REQUIRE(both.difference() == "");
  }
  CHECK(owners > 10);
}

/// A rank of the job that is as this one, of those that a prediction tells apart; none: there is
/// none.
std::optional<std::size_t> rank_like(const SimulatedRank& simulated, const PricedJob& priced,
                                     const std::vector<RankException>& exceptions, bool owners) {
  const auto is_other = [&](std::size_t rank) {
    const RankException* exception = exception_of(exceptions, static_cast<int>(rank));
    return exception == nullptr || !exception->computes_otherwise();
  };
  if (simulated.exception) return static_cast<std::size_t>(simulated.rank);
  for (std::size_t rank = priced.job.ranks(); rank-- > 0;) {
    if (!is_other(rank)) continue;
    const bool slowest = priced.costs.of_rank[rank] != 0;
    if (slowest == simulated.slowest &&
        (!owners || slowest || rank == static_cast<std::size_t>(simulated.rank)))
      return rank;
  }
  return std::nullopt;
}

TEST_CASE("ranks that are slower or pause take the same times in a job as in a prediction",
          "[sim][priced_job]") {
  drawn::Draw draw(74);
  fixtures::Dice dice(74);
  int pauses = 0, slower = 0, slowest = 0, owned = 0, compared = 0;
  for (int round = 0; round < 300; ++round) {
    const drawn::RandomStep step = random_step(draw, 4);
    const Schedule schedule = with_all_inputs(step.schedule);
    program::Job job = program::job_of(schedule, step.works);
    if (job.communicators.size() > 1) continue;  // groups of ranks are not told apart there
    CostModel model(step.cluster);
    model.slowest_rank = draw.one_in(2) ? 1.1 : 1;
    fixtures::differ_some_ranks(dice, model);
    const PricedJob priced = ddpsim::priced(model, std::move(job));
    const std::vector<SimulatedRank> simulated = simulated_ranks(model, schedule);
    const Timeline expected = simulate_ranks(model, schedule);
    if (simulated.size() == 1) continue;
    const JobTimeline timeline = simulate(priced.job, priced.costs);
    const bool owners = different_ranks(schedule, schedule.ranks) > 1;
    CAPTURE(round, schedule.ranks, program::text_of(priced.job));
    // A prediction has a typical rank beside the slowest also where there is but one of both.
    std::vector<std::size_t> ranks;
    for (const SimulatedRank& each : simulated)
      if (const auto rank = rank_like(each, priced, model.exceptions, owners))
        ranks.push_back(*rank);
    if (ranks.size() < simulated.size()) continue;
    if (!owners)
      REQUIRE(difference_of(measure(priced.job, timeline, ranks[0]),
                            measure(schedule, expected, 0)) == "");
    for (std::size_t i = 0; i < simulated.size(); ++i) {
      REQUIRE(difference_at(ranks[i], priced.job, timeline, expected.ranks[i]) == "");
      ++compared;
      slowest += simulated[i].slowest ? 1 : 0;
      slower += simulated[i].exception && simulated[i].compute != 1 ? 1 : 0;
      pauses += simulated[i].exception && simulated[i].exception->pause > Duration{} ? 1 : 0;
      owned += owners ? 1 : 0;
    }
  }
  CAPTURE(compared, pauses, slower, slowest, owned);
  CHECK(pauses > 30);
  CHECK(slower > 30);
  CHECK(slowest > 30);
  CHECK(owned > 20);
}

}  // namespace ddpsim
