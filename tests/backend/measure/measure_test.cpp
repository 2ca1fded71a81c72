#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

#include <catch2/catch.hpp>

#include "backend/device_error.hpp"
#include "backend/measure/measure_collectives.hpp"
#include "backend/measure/measure_kernels.hpp"
#include "backend/measure/measure_machine.hpp"
#include "backend/measure/measure_step.hpp"
#include "model/cost/calibration_fit.hpp"
#include "model/cost/cost_model.hpp"
#include "model/parallel/comm_hook.hpp"
#include "model/program/check.hpp"
#include "model/program/fingerprint.hpp"
#include "model/program/variants.hpp"
#include "tests/backend/jobs.hpp"
#include "tests/model/flat_step.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

template <typename Action>
bool has(const program::Job& job, const program::Program& program) {
  return std::ranges::any_of(program.tasks, [&](const program::Task& task) {
    return std::holds_alternative<Action>(job.deed_of(task).action);
  });
}

bool communicates(const program::Job& job) {
  return has<program::Collective>(job, job.programs.front());
}

/// A backend whose runs are not what they were. Of several rounds it runs one: what they took is
/// made up.
class Changed : public Backend {
 public:
  using Change = std::function<void(RankRun&, const program::Job&)>;
  Changed(Backend& real, Change change) : real_(real), change_(std::move(change)) {}
  int rank() const override { return real_.rank(); }
  int ranks() const override { return real_.ranks(); }
  bool synchronous() const override { return real_.synchronous(); }
  std::string device_name() const override { return real_.device_name(); }
  std::string link_name() const override { return real_.link_name(); }
  std::string versions() const override { return real_.versions(); }
  void load(const Workload& workload, Optimizer optimizer) override {
    real_.load(workload, optimizer);
  }
  std::string refusal(const program::Job& job) const override { return real_.refusal(job); }
  RankRun run(const program::Job& job, const RunOptions& options) override {
    program::Job once = job;
    for (program::Program& program : once.programs) program.rounds = 1;
    RankRun run = real_.run(once, options);
    run.fingerprint = program::fingerprint(job);
    change_(run, job);
    return run;
  }
  std::vector<float> gradient(int parameter) const override { return real_.gradient(parameter); }
  std::vector<Duration> time_all_reduces(Bytes size, int count, bool waiting) override {
    return real_.time_all_reduces(size, count, waiting);
  }
  void sum(std::span<double> values) override { real_.sum(values); }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
    return real_.gather(mine);
  }

 private:
  Backend& real_;
  Change change_;
};

/// What rank 0 measured of two threads.
Calibration measured(const SmallJob& job, const MeasureOptions& options, const Watch& watch = {}) {
  Calibration result;
  const std::vector<program::Job> steps{job.step(Strategy::none), job.step(Strategy::bucketed),
                                        job.step(Strategy::naive)};
  const int code = run_job(job_of(2), [&](Backend& rank) {
    rank.load(job.workload, job.optimizer);
    Calibration mine = measure_machine(rank, job.workload, steps, options, watch);
    if (rank.rank() == 0) result = std::move(mine);
    return 0;
  });
  REQUIRE(code == 0);
  return result;
}

Calibration measured_with(const SmallJob& job, const MeasureOptions& options,
                          const Changed::Change& change) {
  Calibration result;
  const std::vector<program::Job> steps{job.step(Strategy::none), job.step(Strategy::naive)};
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            Changed changed(rank, change);
            Calibration mine = measure_machine(changed, job.workload, steps, options, {});
            if (rank.rank() == 0) result = std::move(mine);
            return 0;
          }) == 0);
  return result;
}

MeasureOptions few() {
  MeasureOptions options;
  options.repeats = 3;
  options.largest = Bytes{1 << 20};
  options.patience = 50ms;
  return options;
}

}  // namespace

TEST_CASE("a measured timeline obeys the job", "[backend][measure]") {
  const SmallJob job(2);
  const Strategy strategy = GENERATE(Strategy::none, Strategy::naive, Strategy::flat,
                                     Strategy::overlap, Strategy::bucketed);
  CAPTURE(name_of(strategy));
  const program::Job step = job.step(strategy);
  JobTimeline timeline;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            const JobTimeline mine = measure_step(rank, step);
            if (rank.rank() == 0) timeline = mine;
            return 0;
          }) == 0);
  REQUIRE(timeline.classes.size() == 2);
  const program::Program& program = step.programs.front();
  for (std::size_t r = 0; r < 2; ++r) {
    const std::vector<TaskTimes>& times = RankOfJob(step, timeline, r).times;
    REQUIRE(times.size() == program.tasks.size());
    Instant host{}, communication{};
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      const program::Task& task = program.tasks[i];
      const StepStream stream = stream_named(step.streams[task.stream].name);
      const TaskTimes& at = times[i];
      CHECK(at.issued <= at.enqueued);
      CHECK(at.start <= at.end);
      CHECK(at.end <= timeline.end);
      CHECK(at.issued >= host);  // the host does one thing after the other
      host = stream == StepStream::host ? at.end : at.enqueued;
      if (stream == StepStream::communication) {
        CHECK(at.end >= communication);  // in issue order
        communication = at.end;
      }
      for (const std::uint32_t earlier : program.waits_for(i))
        if (operation_of(step, task) == Operation::wait) CHECK(at.end >= times[earlier].end);
    }
  }
  // Nobody has the result of an all-reduce before everybody has arrived.
  const std::vector<TaskTimes>& first = RankOfJob(step, timeline, 0).times;
  const std::vector<TaskTimes>& second = RankOfJob(step, timeline, 1).times;
  for (std::size_t i = 0; i < program.tasks.size(); ++i)
    if (operation_of(step, program.tasks[i]) == Operation::all_reduce)
      CHECK(first[i].end >= std::max(first[i].issued, second[i].issued));
}

TEST_CASE("a machine is measured in all that pricing takes", "[backend][measure]") {
  const SmallJob job(2);
  MeasureOptions options = few();
  options.patience = 400ms;  // also on a busy machine
  Calibration calibration = measured(job, options);
  // Where others want the cores, the ranks may never have been at work together.
  for (int tries = 0; tries < 4 && calibration.interference.empty(); ++tries)
    calibration = measured(job, options);
  CHECK(calibration.complete);
  CHECK(calibration.ranks == 2);
  CHECK(calibration.synchronous);
  CHECK_FALSE(calibration.cpu.empty());
  CHECK(calibration.date.size() == std::string("2026-11-21T04:00:00Z").size());
  // Every kernel of the workload, and the copies of these strategies.
  for (const Layer& layer : job.workload.layers)
    for (const Kernel& kernel : layer.backward) {
      const bool there = std::any_of(
          calibration.tasks.begin(), calibration.tasks.end(), [&](const MeasuredWork& task) {
            return task.operation == Operation::backward && task.gemm == kernel.gemm &&
                   task.traffic == kernel.traffic;
          });
      CHECK(there);
    }
  for (const Operation operation : {Operation::copy_in, Operation::copy_out, Operation::divide,
                                    Operation::optimizer, Operation::forward})
    CHECK(std::any_of(calibration.tasks.begin(), calibration.tasks.end(),
                      [&](const MeasuredWork& task) { return task.operation == operation; }));
  for (const MeasuredWork& task : calibration.tasks) {
    CHECK(task.time.low <= task.time.median);
    CHECK(task.time.median <= task.time.high);
    CHECK(task.time.repeats >= 2 * 3);  // ranks, repeats
  }
  REQUIRE(calibration.all_reduce.size() == 9);  // 4 KiB to 1 MiB
  CHECK(calibration.all_reduce.front().size == Bytes{4 << 10});
  CHECK(calibration.all_reduce.back().size == Bytes{1 << 20});
  for (const AllReduceCost& cost : calibration.all_reduce)
    CHECK(cost.time.median > Duration::zero());
  CHECK_FALSE(calibration.interference.empty());
  CHECK(calibration.slowest_rank >= 1);
}

TEST_CASE("jobs of collectives are right, whatever the kind, group and size",
          "[backend][measure]") {
  for (const Operation operation :
       {Operation::all_reduce, Operation::all_gather, Operation::reduce_scatter,
        Operation::broadcast, Operation::all_to_all, Operation::send_receive})
    for (const int ranks : {2, 3, 4})
      for (const int among : {2, ranks})
        for (const Bytes size : {Bytes{1}, 4 * KiB, 256 * MiB}) {
          if (operation == Operation::send_receive && among > 2) continue;
          CAPTURE(name_of(operation), ranks, among, size.count);
          const CollectiveCase collective{operation, among, size};
          const program::Job job = job_of_collectives(collective, ranks, 3);
          CHECK_NOTHROW(program::check(job));
          // Each rank that is in a group hands over what the work says.
          const Bytes payload = payload_of(collective);
          CHECK(job.works.front().payload == payload);
          CHECK(payload.count % 4 == 0);
          if (operation == Operation::all_gather)
            CHECK(among * payload.count >= size.count);
          else
            CHECK(payload.count - size.count < 4 * among);
        }
  CHECK_THROWS_AS(job_of_collectives({Operation::broadcast, 3, KiB}, 2, 1), std::invalid_argument);
  CHECK_THROWS_AS(job_of_collectives({Operation::broadcast, 1, KiB}, 2, 1), std::invalid_argument);
}

TEST_CASE("collectives are measured from the last arrival until the last rank is done",
          "[backend][measure]") {
  // Of three ranks two are a group, and the third has nothing to do.
  std::vector<std::vector<Duration>> times(3);
  std::vector<int> sent(3);
  REQUIRE(run_job(job_of(3), [&](Backend& rank) {
            const program::Job job = job_of_collectives({Operation::all_to_all, 2, 64 * KiB}, 3, 5);
            times[at(rank.rank())] = time_collectives(rank, job);
            // A rank that says it arrived 10 s late, and was done 3 s after that.
            Changed late(rank, [&](RankRun& run, const program::Job&) {
              sent[at(rank.rank())] = run.sent->collectives;
              if (rank.rank() != 1) return;
              for (TaskTimes& task : run.times) {
                task.start += 10s;
                task.end = task.start + 3s;
              }
            });
            for (const Duration each : time_collectives(late, job))
              if (each != 3s) return 5;
            return 0;
          }) == 0);
  CHECK(times[0].size() == 4);  // the first of five does not count
  for (const Duration each : times[0]) CHECK(each > Duration::zero());
  CHECK(times[1] == times[0]);
  CHECK(times[2] == times[0]);
  CHECK(sent == std::vector<int>{5, 5, 0});
}

TEST_CASE("a calibration has the collectives that are asked for, and is priced by them",
          "[backend][measure]") {
  const SmallJob job(2);
  MeasureOptions options = few();
  options.largest = 8 * KiB;
  options.collectives = {{Operation::reduce_scatter, 2, 8 * KiB},
                         {Operation::send_receive, 2, 4 * KiB},
                         {Operation::all_gather, 2, 4 * KiB}};
  const Calibration calibration = measured(job, options);
  std::vector<std::tuple<Operation, int, Bytes>> points;
  for (const MeasuredCollective& each : calibration.collectives) {
    points.emplace_back(each.operation, each.ranks, each.size);
    CHECK(each.time.repeats >= 3);
    CHECK(each.time.low <= each.time.median);
    CHECK(each.time.low > Duration::zero());
  }
  CHECK(points ==
        std::vector<std::tuple<Operation, int, Bytes>>{{Operation::reduce_scatter, 2, 4 * KiB},
                                                       {Operation::reduce_scatter, 2, 8 * KiB},
                                                       {Operation::send_receive, 2, 4 * KiB},
                                                       {Operation::all_gather, 2, 2 * KiB}});
  // A job of such collectives is predicted as long as its collectives were.
  const CalibratedCluster cluster = cluster_of(calibration);
  const program::Job steps = job_of_collectives({Operation::reduce_scatter, 2, 8 * KiB}, 2, 4);
  const Costs costs = CostModel(cluster).price(steps.works, steps.passes);
  CHECK(costs.works.front().work == calibration.collectives[1].time.median);
}

TEST_CASE("interference is measured where both were at work, and left out where they never were",
          "[backend][measure]") {
  const SmallJob job(2);
  MeasureOptions options = few();
  options.repeats = 10;  // three rounds of each size
  options.largest = 64 * KiB;
  options.patience = 10s;
  // All-reduces of the rounds that `late` picks begin when all is computed: what a starved machine
  // does.
  const auto measured_late = [&](std::function<bool(int)> is_late) {
    const Changed::Change made_up = [is_late = std::move(is_late), round = 0, alone = false](
                                        RankRun& run, const program::Job& step) mutable {
      if (communicates(step)) return;
      const bool was_alone = std::exchange(alone, !step.beside);
      run.computed = alone ? 100ms : 110ms;
      if (alone) return;
      // A run that is repeated because the machine's host took its time is of the same round.
      if (was_alone) ++round;
      const bool late = is_late(round);
      run.background_begun = late ? run.computed + 1s : Duration::zero();
      run.background_ended = late ? 0 : 100;
      run.background_busy = late ? 0 : 1;
    };
    return measured_with(job, options, made_up);
  };
  const Calibration sometimes = measured_late([](int round) { return round % 3 == 1; });
  CHECK_FALSE(sometimes.interference.empty());
  for (const MeasuredInterference& point : sometimes.interference)
    CHECK(point.compute_slowdown == Approx(1.1));
  CHECK(sometimes.launch.handover < 500ms);
  const Calibration never = measured_late([](int) { return true; });
  CHECK(never.complete);
  CHECK(never.interference.empty());
  CHECK(never.launch.handover == Duration::zero());
}

TEST_CASE("of a stream that is under way at times, the slowdown is that of those times",
          "[backend][measure]") {
  const SmallJob job(2);
  MeasureOptions options = few();
  options.repeats = 5;
  options.largest = 64 * KiB;
  options.patience = 10s;  // whatever the machine does beside: idle all-reduces are really timed
  const Calibration calibration =
      measured_with(job, options, [](RankRun& run, const program::Job& step) {
        if (communicates(step)) return;
        run.computed = step.beside ? 110ms : 100ms;
        if (!step.beside) return;
        run.background_begun = {};
        run.background_ended = 20;
        run.background_busy = has<program::Pause>(step, *step.beside) ? 0.2 : 1;
      });
  bool small = false, large = false;
  for (const MeasuredInterference& point : calibration.interference) {
    CAPTURE(point.size.count);
    // A fifth of 110 ms under way, in which 10 ms were lost: 22 ms did the work of 12.
    const bool one_by_one = point.size < 64 * KiB;
    CHECK(point.compute_slowdown == Approx(one_by_one ? 22.0 / 12 : 1.1));
    (one_by_one ? small : large) = true;
  }
  CHECK(small);
  CHECK(large);
}

TEST_CASE("a machine that stands still in every step leaves factors that a reader takes",
          "[backend][measure]") {
  const SmallJob job(2, {64, 256, 256, 64});
  MeasureOptions options = few();
  options.largest = 64 * KiB;
  // In each run another forward kernel takes ten seconds: a step takes long, no kernel's median.
  const Calibration calibration =
      measured_with(job, options, [stalled = 0](RankRun& run, const program::Job& step) mutable {
        std::vector<std::size_t> forward;
        const std::vector<program::Task>& tasks = step.programs.front().tasks;
        for (std::size_t i = 0; i < std::min(tasks.size(), run.times.size()); ++i)
          if (step.works[tasks[i].work].operation == Operation::forward) forward.push_back(i);
        if (!forward.empty())
          run.times[forward[static_cast<std::size_t>(stalled++) % forward.size()]].end += 10s;
      });
  double most = 0;
  for (const OperationFactor& factor : calibration.factors) {
    CHECK(factor.over_medians >= OperationFactor::least);
    most = std::max(most, factor.over_medians);
  }
  CHECK(most == OperationFactor::most);
}

TEST_CASE("a round in which the machine stalls does not count as interference",
          "[backend][measure]") {
  const SmallJob job(2);
  for (const int repeats : {1, 10, 15}) {
    CAPTURE(repeats);
    MeasureOptions options = few();
    options.repeats = repeats;
    options.largest = 64 * KiB;
    options.patience = 10s;
    const int rounds = repeats < 15 ? 3 : 5;
    const Calibration calibration = measured_with(
        job, options,
        [rounds, round = 0, alone = false](RankRun& run, const program::Job& step) mutable {
          if (communicates(step)) return;
          const bool was_alone = std::exchange(alone, !step.beside);
          run.computed = alone ? 100ms : 110ms;
          if (alone) return;
          run.background_begun = {};
          run.background_ended = 100;  // some 1 ms each: plausible beside any idle one
          run.background_busy = 1;
          // A run that is repeated because the machine's host took its time is of the same round.
          if (was_alone) ++round;
          if (round % rounds == 1) run.computed = 1100ms;
        });
    CHECK_FALSE(calibration.interference.empty());
    for (const MeasuredInterference& point : calibration.interference)
      CHECK(point.compute_slowdown == Approx(1.1));
  }
}

TEST_CASE("what a comm hook computes is measured where it runs", "[backend][measure]") {
  const SmallJob job(2, {64, 256, 256, 64});
  Training training;
  training.bucket_cap = 64 * KiB;
  training.first_bucket_cap = 64 * KiB;
  const program::Job alone = [&] {
    Training none = training;
    none.strategy = Strategy::none;
    return job.step(none);
  }();
  training.comm_hook.kind = CommHookKind::fp16_compress;
  const program::Job hooked = job.step(training);
  const program::Job paused = with_pauses(hooked, [](const Work&) { return Duration{20ms}; });
  std::vector<Duration> collectives, asides;
  Calibration calibration;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            RunOptions options;
            options.by_processor = true;
            std::optional<Sent> sent;
            const JobTimeline timeline = measure_step(rank, paused, options, &sent);
            const std::vector<program::Job> steps{alone, hooked};
            Calibration mine = measure_machine(rank, job.workload, steps, few(), {});
            if (rank.rank() != 0) return 0;
            calibration = std::move(mine);
            if (sent->collectives != 0 || sent->payload != Bytes{}) return 1;
            const RankOfJob of(paused, timeline, 0);
            for (std::size_t i = 0; i < of.times.size(); ++i) {
              const program::Task& task = of.program.tasks[i];
              const TaskTimes& at = of.times[i];
              if (operation_of(paused, task) == Operation::pause)
                collectives.push_back(at.end - at.start);
              else if (stream_named(paused.streams[task.stream].name) == StepStream::communication)
                asides.push_back(at.end - at.start);
            }
            return 0;
          }) == 0);
  REQUIRE(collectives.size() == hooked.groups.size());
  REQUIRE(asides.size() == hooked.groups.size());
  for (const Duration time : collectives) CHECK(time >= 20ms);
  for (const Duration time : asides) {
    CHECK(time > Duration::zero());
    CHECK(time < 20ms);  // the processor's time, whatever runs beside it
  }
  int aside = 0, in_place = 0;
  for (const MeasuredWork& task : calibration.tasks)
    if (task.operation == Operation::cast) ++(task.aside ? aside : in_place);
  CHECK(aside > 0);
  CHECK(in_place > 0);
  CHECK(calibration.backward_beside_hook >= 1);
}

TEST_CASE("backward is held beside each comm hook apart", "[backend][measure]") {
  const SmallJob job(2, {64, 128, 128, 64});
  const auto hook_of = [](CommHookKind kind) {
    CommHook hook;
    hook.kind = kind;
    return hook;
  };
  const CommHook fp16 = hook_of(CommHookKind::fp16_compress);
  const CommHook powersgd = hook_of(CommHookKind::powersgd);
  std::vector<program::Job> steps;
  Training training;
  training.strategy = Strategy::none;
  steps.push_back(job.step(training));
  training.strategy = Strategy::bucketed;
  training.bucket_cap = 32 * KiB;
  training.first_bucket_cap = 32 * KiB;
  for (const CommHook& hook : {fp16, powersgd}) {
    training.comm_hook = hook;
    steps.push_back(job.step(training));
  }
  double of_fp16 = 0, of_powersgd = 0, of_all = 0, of_other = 0, of_one = 0, of_only = 0;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            for (const program::Job& step : steps) measure_step(rank, step);
            const std::vector<program::Job> two(steps.begin(), steps.begin() + 2);
            MeasureKernels both(rank, steps);
            MeasureKernels one(rank, two);
            for (int round = 0; round < 3; ++round) {
              both.run_hooked({}, true);
              one.run_hooked({}, true);
            }
            if (rank.rank() != 0) return 0;
            of_fp16 = both.backward_beside(state_of(fp16));
            of_powersgd = both.backward_beside(state_of(powersgd));
            of_all = both.backward_beside(std::nullopt);
            of_other = both.backward_beside(state_of(hook_of(CommHookKind::bf16_compress)));
            of_one = one.backward_beside(state_of(fp16));
            of_only = one.backward_beside(std::nullopt);
            return 0;
          }) == 0);
  CHECK(of_all >= std::min(of_fp16, of_powersgd));
  CHECK(of_all <= std::max(of_fp16, of_powersgd));
  CHECK(of_other == 1);
  CHECK(of_one == of_only);
}

TEST_CASE("every hook that computes aside does so beside collectives that only last",
          "[backend][measure]") {
  const SmallJob job(2, {64, 128, 128, 64});
  int hooks = 0;
  for (const CommHookKind kind : all_comm_hooks) {
    if (kind == CommHookKind::steps || kind == CommHookKind::plugin) continue;
    CAPTURE(name_of(kind));
    Training training;
    training.bucket_cap = 32 * KiB;
    training.first_bucket_cap = 32 * KiB;
    training.comm_hook.kind = kind;
    const program::Job hooked = job.step(training);
    if (std::ranges::none_of(hooked.works, [](const Work& work) {
          return work.aside && work.operation != Operation::synchronize;
        }))
      continue;
    ++hooks;
    const auto lasting = [](const Work& work) { return work.payload.count * 1ns + 2ms; };
    const program::Job paused = with_pauses(hooked, lasting);
    std::vector<Duration> expected;  // of the pauses, in order
    const program::Program& second = hooked.programs[hooked.program_of[1]];
    for (const program::Task& task : second.tasks)
      if (hooked.deed_of(task).origin.label != 0 && is_collective(operation_of(hooked, task)))
        expected.push_back(lasting(hooked.works[task.work]));
    JobTimeline timeline;
    REQUIRE(run_job(job_of(2), [&](Backend& rank) {
              rank.load(job.workload, job.optimizer);
              measure_step(rank, hooked);
              RunOptions options;
              options.by_processor = true;
              std::optional<Sent> sent;
              JobTimeline mine = measure_step(rank, paused, options, &sent);
              if (rank.rank() == 0) timeline = std::move(mine);
              return sent->collectives == 0 ? 0 : 1;
            }) == 0);
    std::size_t pauses = 0;
    const RankOfJob of(paused, timeline, 1);
    const std::vector<program::Task>& tasks = of.program.tasks;
    REQUIRE(of.times.size() == tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const TaskTimes& at = of.times[i];
      if (of.origin_of(tasks[i]).label == 0 ||
          stream_named(paused.streams[tasks[i].stream].name) != StepStream::communication)
        continue;
      if (operation_of(paused, tasks[i]) == Operation::pause) {
        REQUIRE(pauses < expected.size());
        CHECK(at.end - at.start >= expected[pauses++]);
      }
      for (const std::uint32_t earlier : of.program.waits_for(i))
        if (operation_of(paused, tasks[earlier]) == Operation::pause)
          CHECK(at.start >= of.times[earlier].end);
    }
    CHECK(pauses == expected.size());
  }
  CHECK(hooks >= 6);
}

TEST_CASE("all-reduces with pauses between them are under way at times", "[backend][measure]") {
  const SmallJob job(2);
  const program::Job step = without_communication(job.step(Strategy::none));
  // The median of five, each beside half a second of computation. On a busy machine an all-reduce,
  // and the end of a pause, may each wait some 20 ms for a processor: the long pause is longer.
  const auto busy = [&](Duration pause) {
    std::vector<double> shares;
    REQUIRE(run_job(job_of(2), [&](Backend& rank) {
              rank.load(job.workload, job.optimizer);
              constexpr int rounds = 100;
              const program::Job quiet = repeated(step, rounds);
              Duration alone = rank.run(quiet).computed;
              for (int again = 0; again < 3; ++again)
                alone = std::min(alone, rank.run(quiet).computed);
              std::vector<double> each{in_seconds(alone)};
              rank.sum(each);
              const program::Job beside =
                  repeated(with_background(step, 4 * KiB, pause),
                           1 + static_cast<int>(0.5 * 2 * rounds / each[0]));
              for (int repeat = 0; repeat < 5; ++repeat) {
                const RankRun run = rank.run(beside);
                if (rank.rank() == 0) shares.push_back(run.background_busy);
              }
              return 0;
            }) == 0);
    std::sort(shares.begin(), shares.end());
    return shares.at(2);
  };
  CHECK(busy(Duration::zero()) == 1);
  const double often = busy(100us), seldom = busy(60ms);
  CAPTURE(often, seldom);
  CHECK(often < 1);
  CHECK(seldom > 0);
  CHECK(seldom < often);
}

TEST_CASE("of all-reduces that began too late for a computation, none was under way",
          "[backend][measure]") {
  const SmallJob job(2);
  const program::Job step =
      with_background(without_communication(job.step(Strategy::none)), 4 * KiB, 500ms);
  RankRun late;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            const RankRun run = rank.run(step);
            if (rank.rank() == 0) late = run;
            return 0;
          }) == 0);
  CHECK(late.background_begun > late.computed);
  CHECK(late.background_busy == 0);
  CHECK(late.background_ended == 0);
}

TEST_CASE("a backend that executes another job than it was given is found",
          "[backend][measure][fingerprint]") {
  const SmallJob job(2);
  const program::Job step = job.step(Strategy::bucketed);
  CHECK(run_job(job_of(2), [&](Backend& rank) {
          rank.load(job.workload, job.optimizer);
          Changed changed(rank, [&](RankRun& run, const program::Job&) {
            if (rank.rank() == 1) run.fingerprint ^= 1;
          });
          const std::uint64_t wanted = program::fingerprint(step);
          const std::string usual = program::fingerprint_text(wanted);
          const std::string other = program::fingerprint_text(wanted ^ 1);
          try {
            measure_step(changed, step);
          } catch (const DeviceError& problem) {
            const std::string why = problem.what();
            return why.find("rank 0 is " + usual + ", rank 1 has " + other) != why.npos ? 0 : 6;
          }
          return 5;
        }) == 0);
}

TEST_CASE("measuring that is stopped keeps what it had", "[backend][measure]") {
  const SmallJob job(2);
  std::atomic<bool> stop = false;
  Watch watch;
  watch.progress = [&](const std::string& what, double) {
    if (what.starts_with("all-reduce of 16 KiB")) stop = true;
  };
  watch.stop = [&] { return stop.load(); };
  const Calibration calibration = measured(job, few(), watch);
  CHECK_FALSE(calibration.complete);
  CHECK_FALSE(calibration.tasks.empty());
  CHECK(calibration.all_reduce.size() == 2);  // 4 and 8 KiB; of 16 there was not all
  CHECK(calibration.interference.empty());
}

TEST_CASE("spread counts what lies far outside", "[backend][measure]") {
  std::vector<Duration> samples;
  for (int i = 1; i <= 99; ++i) samples.push_back(100ms + i * 1ms);
  // Quartiles 126 and 174 ms or so: three times their distance reaches to about 320.
  samples.push_back(1000ms);
  const Spread spread = spread_of(samples);
  CHECK(spread.repeats == 100);
  CHECK(spread.outliers == 1);
  CHECK(spread.median == 151ms);  // the 51st of 100
  CHECK(spread.low == 111ms);     // the 11th
  CHECK(spread.high == 190ms);    // the 90th
  CHECK_THROWS_AS(spread_of({}), std::invalid_argument);
}

TEST_CASE("times are the same whatever rank asks: a sum is identical on all",
          "[backend][measure]") {
  std::mutex mutex;
  std::vector<std::vector<double>> sums;
  run_job(job_of(3), [&](Backend& rank) {
    std::vector<double> values{0.1 * (rank.rank() + 1), 1e16, -1e16 * rank.rank()};
    rank.sum(values);
    const std::lock_guard lock(mutex);
    sums.push_back(values);
    return 0;
  });
  REQUIRE(sums.size() == 3);
  CHECK(sums[0] == sums[1]);
  CHECK(sums[0] == sums[2]);
  CHECK(sums[0][0] == Approx(0.6));
}

TEST_CASE("what one rank gathers is what each gave, also nothing", "[backend][measure]") {
  std::atomic<int> good = 0;
  run_job(job_of(3), [&](Backend& rank) {
    const std::vector<std::byte> mine(static_cast<std::size_t>(rank.rank()), std::byte{7});
    const auto all = rank.gather(mine);
    if (all.size() == 3 && all[0].empty() && all[1].size() == 1 && all[2].size() == 2 &&
        all[2][1] == std::byte{7})
      ++good;
    return 0;
  });
  CHECK(good == 3);
}

}  // namespace ddpsim
