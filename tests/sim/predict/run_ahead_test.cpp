#include "sim/predict/run_ahead.hpp"

#include <catch2/catch.hpp>

#include "model/parallel/write/step_writer.hpp"
#include "model/program/joined_jobs.hpp"
#include "sim/engine/price.hpp"
#include "sim/predict/predict.hpp"
#include "tests/sim/predict/random_steps.hpp"

using namespace ddpsim;
using namespace ddpsim::fixtures;
using namespace std::chrono_literals;

namespace {

/// A kernel that takes `time` on the device, and the host a plain launch.
Work timed_work(Operation operation, Duration time) {
  Work work;
  work.operation = operation;
  work.known_time = time;
  return work;
}

/// Forward, backward, an all-reduce of all, the wait for it (the last mark is behind that) and the
/// optimizer; each takes the host `launch` to enqueue.
struct HandMade {
  Duration launch{}, forward{}, backward{}, all_reduce{}, optimizer{};
  bool waits = true;  ///< for the all-reduce

  program::Job job() const {
    const WorkTable known;
    StepWriter step(known, {.ranks = 2});
    const auto pass = [&](Operation operation, Duration time) {
      step.kernel_task(operation, timed_work(operation, time), program::Compute{},
                       {.layer = 0, .kernel = 0});
    };
    pass(Operation::forward, forward);
    pass(Operation::backward, backward);
    Work sent;
    sent.operation = Operation::all_reduce;
    sent.payload = {4};
    const std::int32_t result =
        step.send({.work = sent, .of = {.group = 0}, .input = step.last_kernel});
    if (waits) step.await(result, 0);
    pass(Operation::optimizer, optimizer);
    if (waits) step.log_iterations();
    program::Job job = step.finish(0, {});
    job.groups = {{{0}, {4}}};
    return job;
  }

  /// By which its work costs what is said above.
  StepModel model() const {
    Cluster cluster = timed::constant(2, all_reduce);
    cluster.launch = {launch, launch, Duration::zero()};
    return timed::model_of(timed::chain(1, 1ms, 1ms, Bytes{4}), cluster);
  }

  ConsecutiveSteps steps(std::size_t count) const {
    ConsecutiveSteps steps;
    const StepModel model = this->model();
    steps.kinds.push_back(predict(model.costs, {}, std::make_shared<const PlannedStep>(job())));
    steps.sequence.assign(count, 0);
    steps.counts = {static_cast<std::int64_t>(count)};
    return steps;
  }
};

/// Launches of 1 ms, work of 40.4 ms: the device is what takes time.
const HandMade compute_bound{1ms, 10ms, 20ms, 10ms, 400us};
/// Launches of 10 ms, work of 1 ms each.
const HandMade launch_bound{10ms, 1ms, 1ms, 1ms, 1ms};

}  // namespace

TEST_CASE("R47: on a compute-bound device the host waits at the forward after a sampled iteration",
          "[sim][run_ahead]") {
  const ConsecutiveSteps steps = compute_bound.steps(102);
  // Alone: the first launch, then the device without pause.
  REQUIRE(steps.kinds[0].metrics.step == 41'400us);
  const RunAhead run = run_ahead(compute_bound.model(), steps);
  REQUIRE(run.periods.size() == 102);
  CHECK(run.periods[0] == 41'400us);
  REQUIRE(run.waits.size() == 11);
  for (std::size_t step = 1; step < 102; ++step) {
    CAPTURE(step);
    const bool follows_sampled = step <= 10 || step == 100;
    // After the mark the device has 0.4 ms of optimizer to do, the host a launch of 1 ms: 0.6 ms of
    // pause. Otherwise there is none.
    CHECK(run.periods[step] == (follows_sampled ? 41ms : 40'400us));
  }
  // Four launches, then until the wait ends at 41 ms.
  CHECK(run.waits[0].step == 1);
  CHECK(run.waits[0].time == 41ms - 4ms);
  // From mark to mark, less four launches.
  for (std::size_t i = 1; i < 10; ++i) {
    CHECK(run.waits[i].step == i + 1);
    CHECK(run.waits[i].time == 41ms - 4ms);
  }
  // Ninety steps' launches on, the host has come 90 marks ahead: the first a pause behind, the
  // others without.
  CHECK(run.waits[10].step == 100);
  CHECK(run.waits[10].time == 41ms + 89 * 40'400us - 90 * 4ms);
  CHECK(run.waited() == 10 * 37ms + run.waits[10].time);
  CHECK(run.total() == 41'400us + 11 * 41ms + 90 * 40'400us);
}

TEST_CASE("R47: a launch-bound host never waits for timers, and gains its last kernel only",
          "[sim][run_ahead]") {
  const ConsecutiveSteps steps = launch_bound.steps(30);
  REQUIRE(steps.kinds[0].metrics.step == 41ms);
  const RunAhead run = run_ahead(launch_bound.model(), steps);
  CHECK(run.periods[0] == 41ms);
  // The optimizer's kernel runs beside the next launch.
  for (std::size_t step = 1; step < 30; ++step) CHECK(run.periods[step] == 40ms);
  REQUIRE(run.waits.size() == 10);
  CHECK(run.waited() == Duration::zero());
}

TEST_CASE("an all-reduce that nobody waits for holds back the next one, and no kernel",
          "[sim][run_ahead]") {
  HandMade unwaited{Duration::zero(), 10ms, 20ms, 50ms, 5ms, false};
  const StepModel model = unwaited.model();
  const program::Job step = unwaited.job();
  const std::vector<const program::Job*> kinds{&step};
  const program::JoinedJobs joined =
      program::join(kinds, std::vector<std::int32_t>{0, 0}, DdpAverages::samples);
  CHECK(joined.timer_reads.empty());  // no mark either
  const JobTimeline timeline = simulate(joined.job, price(model.costs, joined.job));
  const auto window = [&](std::size_t task) { return work_of(timeline.classes.front().at(task)); };
  CHECK(window(2) == Window{30ms, 80ms});
  CHECK(window(4) == Window{35ms, 45ms});   // the second forward
  CHECK(window(6) == Window{80ms, 130ms});  // its all-reduce: ready at 65
  CHECK(window(7) == Window{65ms, 70ms});
  const RunAhead run = run_ahead(unwaited.model(), unwaited.steps(2));
  CHECK(run.periods == std::vector<Duration>{80ms, 50ms});
}

TEST_CASE("one step by itself has nothing to run ahead of", "[sim][run_ahead]") {
  const RunAhead run = run_ahead(compute_bound.model(), compute_bound.steps(1));
  CHECK(run.periods == std::vector<Duration>{41'400us});
  CHECK(run.waits.empty());
}

TEST_CASE("R47: running ahead makes no run longer where timers are read between steps only",
          "[sim][run_ahead]") {
  Dice dice(47);
  int asynchronous = 0, shorter = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const Workload workload = random_workload(dice);
    const Cluster cluster = random_cluster(dice, false);
    Training training = random_training(dice, workload);
    // Where several micro-batches communicate timers are read within a step as well, which a step
    // of its own does not show.
    training.no_sync = true;
    const StepModel model(workload, cluster, Optimizer::sgd);
    const ConsecutiveSteps steps = consecutive_steps(model, training, dice.between(1, 15));
    if (model.costs.synchronous) {
      CHECK_THROWS_AS(run_ahead(model, steps), std::invalid_argument);
      continue;
    }
    ++asynchronous;
    const RunAhead run = run_ahead(model, steps);
    Duration apart{}, work{};
    for (const std::int32_t kind : steps.sequence) {
      const Step& step = steps.kinds[static_cast<std::size_t>(kind)];
      apart += step.metrics.step;
      const Costs costs = model.costs.price(step.job().works, step.job().passes);
      for (const program::Task& task : step.rank().program.tasks)
        if (step.job().streams[task.stream].name == "compute") work += costs.of(task).work;
    }
    REQUIRE(run.total() <= apart);
    REQUIRE(run.total() >= work);
    shorter += run.total() < apart;
    for (const RunAhead::HostWait& wait : run.waits) REQUIRE(wait.time >= Duration::zero());
  }
  CHECK(asynchronous > 200);
  CHECK(shorter > 100);
}

TEST_CASE("with a rank slower than the others all go at its pace", "[sim][run_ahead]") {
  Workload workload = timed::chain(3, 2ms, 4ms, Bytes{1'000'000});
  StepModel model =
      timed::model_of(workload, timed::ring(2, Duration::zero(), gigabytes_per_second(1)));
  const Training training;
  const Duration alike = run_ahead(model, consecutive_steps(model, training, 20)).total();
  model.costs.slowest_rank = 1.5;
  const Duration slowed = run_ahead(model, consecutive_steps(model, training, 20)).total();
  CHECK(slowed >= alike + 20 * 9ms);  // half of 18 ms of passes more in each
}

TEST_CASE("what is too long for one simulation is refused, with what to write instead",
          "[sim][run_ahead]") {
  // Five tasks a step.
  CHECK_THROWS_WITH(run_ahead(compute_bound.model(), compute_bound.steps(most_steps * 2)),
                    Catch::Contains("more than 6000000 tasks") &&
                        Catch::Contains("take --steps 1200000 or fewer"));
  HandMade days = compute_bound;
  days.forward = 5h;
  // 144 of them are 30 days, less the rest of the step.
  CHECK_THROWS_WITH(
      run_ahead(days.model(), days.steps(1000)),
      Catch::Contains("more than 30 days") && Catch::Contains("take --steps 143 or fewer"));
}
