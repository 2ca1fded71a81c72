// Steps of random trainings as jobs and as schedules.
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/cost/cost_model.hpp"
#include "model/program/text.hpp"
#include "model/schedule/variants.hpp"
#include "model/timeline/job_metrics.hpp"
#include "sim/predict/predict.hpp"
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

}  // namespace

TEST_CASE("a job's rank has the figures of the schedule that was made a job of",
          "[sim][job_metrics]") {
  drawn::Draw draw(74);
  fixtures::Dice dice(74);
  int owners = 0, slower = 0;
  for (int round = 0; round < 400; ++round) {
    const drawn::RandomStep step = random_step(draw, 4);
    CostModel model(step.cluster);
    model.slowest_rank = draw.one_in(2) ? 1.1 : 1;
    if (draw.one_in(2)) fixtures::differ_some_ranks(dice, model);
    const PlannedStep planned(step.works, step.schedule);
    CAPTURE(round, name_of(step.training.strategy), program::text_of(planned.job));
    const Schedule shown = schedule_of_rank(planned.schedule, 0);
    const Timeline timeline = simulate_ranks(model, planned);
    const JobTimeline of_job = simulate(planned.job, price(model, planned.job));
    // Of ranks that are alike the first one that is no exception is shown.
    std::size_t rank = 0;
    const bool owned = planned.job.programs.size() > 1;
    const auto& kinds = of_job.details_of;
    while (!owned && rank + 1 < planned.job.ranks() && kinds[of_job.class_of[rank]] != 0) ++rank;
    REQUIRE(difference_of(measure(planned.job, of_job, rank), measure(shown, timeline)) == "");
    owners += owned ? 1 : 0;
    slower += of_job.classes.size() > 1 ? 1 : 0;
  }
  CHECK(owners > 10);
  CHECK(slower > 50);
}

}  // namespace ddpsim
