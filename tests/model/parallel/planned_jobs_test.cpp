#include <algorithm>
#include <chrono>
#include <cstddef>

#include <catch2/catch.hpp>

#include "model/parallel/order/build_job.hpp"
#include "model/program/text.hpp"
#include "model/program/variants.hpp"
#include "tests/model/parallel/random_trainings.hpp"
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

/// A comm hook updates the parameters of each bucket as soon as it is reduced.
void with_updates_at_once(drawn::Draw& draw, Training& training) {
  training.strategy = Strategy::bucketed;
  training.buckets.clear();
  training.bucket_caps.clear();
  training.parameter_groups = 0;
  training.bucket_cap = training.first_bucket_cap.emplace(draw.between(1, 10'000));
  training.comm_hook = {};
  training.comm_hook.kind = CommHookKind::optimizer_overlap;
  training.iteration = 0;
}

}  // namespace

TEST_CASE("every step is a job in which all that is read was written",
          "[model][program][properties]") {
  drawn::Draw draw(37);
  int dependencies = 0, needed = 0, of_owners = 0, without_inputs = 0;
  for (int round = 0; round < 1000; ++round) {
    const drawn::RandomStep step =
        draw.one_in(6) ? drawn::random_step_of(draw, with_zero) : drawn::random_step_of(draw);
    const Job& job = step.job;
    CAPTURE(round, name_of(step.training.strategy), text_of(job));
    REQUIRE(written::wrong_in(job) == "");
    const bool some_have_none = step.training.join && step.training.join->joined_ranks > 0;
    of_owners += job.programs.size() > (some_have_none ? 2U : 1U) ? 1 : 0;
    without_inputs += some_have_none ? 1 : 0;
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

TEST_CASE("updates of several buckets at once wait for nothing of each other",
          "[model][program][properties]") {
  drawn::Draw draw(53);
  int keeping_nothing = 0;
  for (int round = 0; round < 200; ++round) {
    const drawn::RandomStep step = drawn::random_step_of(draw, with_updates_at_once);
    if (step.cluster.collectives_at_once == 1) continue;
    CAPTURE(round, name_of(step.works.updates), text_of(step.job));
    REQUIRE(written::wrong_in(step.job) == "");
    keeping_nothing += state_slices(step.works.updates) == 0 ? 1 : 0;
  }
  CHECK(keeping_nothing > 10);
}

TEST_CASE("what is measured of a step is a job too: without communication, with pauses, repeated",
          "[model][program][properties]") {
  using namespace std::chrono_literals;
  drawn::Draw draw(41);
  int paused = 0, hooked = 0;
  for (int round = 0; round < 300; ++round) {
    const drawn::RandomStep step = drawn::random_step_of(draw);
    const auto wrong_in = [](const Job& job) { return written::wrong_in(job); };
    const Job quiet = without_communication(step.job);
    CAPTURE(round, name_of(step.training.strategy), label(step.training.comm_hook));
    CHECK(wrong_in(quiet) == "");
    CHECK(wrong_in(repeated(step.job, 3)) == "");
    CHECK(wrong_in(without_updates(step.job)) == "");
    const Job beside = with_background(quiet, 4 * KiB, 1ms);
    CHECK(written::wrong_in(beside) == "");
    REQUIRE(beside.beside);
    CHECK(beside.beside->tasks.size() == 2);
    if (!step.works.device.synchronous) continue;
    CHECK(wrong_in(with_pauses(step.job, [](const Work&) { return Duration{1ms}; })) == "");
    ++paused;
    hooked += std::ranges::any_of(step.job.works, &Work::aside) ? 1 : 0;
  }
  CAPTURE(paused, hooked);
  CHECK(paused > 50);
  CHECK(hooked > 10);
}

TEST_CASE("a plugin's hook may read the gradients that are complete and not on their way",
          "[model][program]") {
  drawn::Draw draw(43);
  int some_taken = 0, all_there = 0;
  for (int round = 0; round < 400; ++round) {
    const drawn::RandomStep step = drawn::random_step_of(draw);
    const Job& job = step.job;
    std::size_t last = 0;
    std::int16_t micro_batch = -1;
    for (const Task& task : job.programs.front().tasks) {
      const auto* plugin = std::get_if<Plugin>(&job.deed_of(task).action);
      if (plugin == nullptr || plugin->what != Plugin::What::gradient) continue;
      const auto complete = job.own.of(plugin->complete), reads = job.own.of(plugin->reads);
      const Slice own = job.own.of(plugin->writes).front();
      CHECK(std::ranges::find(complete, own) != complete.end());
      if (task.micro_batch > 0) CHECK(reads.size() == complete.size());
      const std::int16_t now = task.micro_batch;
      if (now == micro_batch) CHECK(complete.size() >= last);
      micro_batch = now;
      last = complete.size();
      for (const Slice& each : reads) CHECK(std::ranges::find(complete, each) != complete.end());
      ++(reads.size() < complete.size() ? some_taken : all_there);
    }
  }
  CAPTURE(some_taken, all_there);
  CHECK(some_taken > 0);
  CHECK(all_there > 0);
}

}  // namespace ddpsim::program
