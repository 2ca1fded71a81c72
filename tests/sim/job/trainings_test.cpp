// Steps of random trainings as jobs: the engine of jobs gives each task the times that the engine
// of schedules gives it.
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/cost/cost_model.hpp"
#include "model/ddp/job_of_step.hpp"
#include "model/program/text.hpp"
#include "model/schedule/variants.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/job/run_job.hpp"
#include "tests/model/ddp/random_trainings.hpp"

namespace ddpsim {
namespace {

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
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      const program::Program& program = job_.programs[job_.program_of[rank]];
      const std::vector<TaskTimes>& times = timeline.classes[timeline.class_of[rank]];
      for (std::size_t place = 0; place < program.tasks.size(); ++place) {
        const std::uint32_t task = program.tasks[place].deed;
        if (task >= schedule_.tasks.size()) continue;  // a host's wait, which is part of a task
        const TaskTimes& at = times[place];
        const TaskTimes& as = expected.ranks[rank][task];
        if (at.start == as.start && at.end == as.end && at.enqueued == as.enqueued) continue;
        return fmt::format("rank {}, task {}: {} to {} ps, not {} to {}", rank, task,
                           at.start.time_since_epoch().count(), at.end.time_since_epoch().count(),
                           as.start.time_since_epoch().count(), as.end.time_since_epoch().count());
      }
    }
    return {};
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
    const drawn::RandomStep step = drawn::random_step_of(draw, [](drawn::Draw& of, Training& each) {
      if (!of.one_in(6)) return;
      each.strategy = Strategy::bucketed;
      each.comm_hook = {};
      each.comm_hook.kind = CommHookKind::zero_step;
      each.iteration = 0;
    });
    const BothWays both(step, draw);
    owners += both.job().programs.size() > 1 ? 1 : 0;
    CAPTURE(round, name_of(step.training.strategy), program::text_of(both.job()));
    REQUIRE(both.difference() == "");
  }
  CHECK(owners > 10);
}

}  // namespace ddpsim
