#include "model/ddp/job_of_step.hpp"

#include <cstddef>

#include <catch2/catch.hpp>

#include "model/program/text.hpp"
#include "tests/model/ddp/random_trainings.hpp"
#include "tests/model/program/written_jobs.hpp"

namespace ddpsim::program {
namespace {

/// Each bucket's owner alone updates its parameters.
void with_zero(drawn::Draw& draw, Training& training) {
  training.strategy = Strategy::bucketed;
  training.comm_hook = {};
  training.comm_hook.kind =
      draw.one_in(2) ? CommHookKind::zero_step : CommHookKind::zero_step_interleaved;
  training.iteration = 0;
}

}  // namespace

TEST_CASE("every schedule is a job in which all that is read was written",
          "[model][program][properties]") {
  drawn::Draw draw(37);
  int dependencies = 0, needed = 0, of_owners = 0, without_inputs = 0;
  for (int round = 0; round < 1000; ++round) {
    const drawn::RandomStep step =
        draw.one_in(6) ? drawn::random_step_of(draw, with_zero) : drawn::random_step_of(draw);
    const Job job = job_of(step.schedule, step.works);
    CAPTURE(round, name_of(step.training.strategy), text_of(job));
    REQUIRE(written::wrong_in(job) == "");
    of_owners += different_ranks(step.schedule, step.schedule.ranks) > 1 ? 1 : 0;
    without_inputs += step.schedule.ranks_without_inputs > 0 ? 1 : 0;
    // One that is left out is missed, unless another one orders the same tasks.
    const auto all = static_cast<int>(job.programs[0].after.size());
    if (all == 0) continue;
    const auto left_out = static_cast<std::size_t>(draw.between(0, all - 1));
    ++dependencies;
    needed += written::wrong_in(written::without_dependency(job, left_out)).empty() ? 0 : 1;
  }
  CAPTURE(dependencies, needed, of_owners, without_inputs);
  CHECK(of_owners > 10);
  CHECK(without_inputs > 10);
  CHECK(needed > dependencies / 2);
}

}  // namespace ddpsim::program
