// Comm hooks on the NCCL backend, without a GPU: the fake GPU computes on host memory.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include <catch2/catch.hpp>

#include "backend/measure/measure_machine.hpp"
#include "model/program/variants.hpp"
#include "tests/backend/fakes.hpp"
#include "tests/backend/host_hooks.hpp"
#include "tests/model/flat_step.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Training training_of(const CommHook& hook) {
  Training training;
  training.bucket_cap = Bytes{8 << 10};
  training.first_bucket_cap = Bytes{2 << 10};
  training.comm_hook = hook;
  training.iteration = 3;
  return training;
}

CommHook hook_from_step_2(CommHookKind kind) {
  CommHook hook;
  hook.kind = kind;
  hook.powersgd.start_iteration = 2;
  return hook;
}

}  // namespace

TEST_CASE("every step of a comm hook is behind what it waits for, and no stream waits for more",
          "[backend][nccl][comm_hooks]") {
  const SmallJob job = gpu_job(2);
  for (const HookCase& each : gpu_hooks()) {
    CAPTURE(label(each.hook));
    const program::Job step = job.step(training_of(each.hook));
    check_dependencies(step, calls_of(job, step));
  }
}

TEST_CASE("no two streams write one place of memory unordered, whatever the comm hook",
          "[backend][nccl][comm_hooks]") {
  const SmallJob job = gpu_job(2);
  for (const HookCase& each : gpu_hooks()) {
    CAPTURE(label(each.hook));
    const std::vector<GpuCall> calls = calls_of(job, job.step(training_of(each.hook)));
    const Order order(calls, true);
    std::size_t pairs = 0;
    for (std::size_t a = 0; a < calls.size(); ++a)
      for (std::size_t b = a + 1; b < calls.size(); ++b) {
        if (calls[a].stream == calls[b].stream || calls[a].count == 0 || calls[b].count == 0)
          continue;
        const auto* first = static_cast<const float*>(calls[a].result);
        const auto* second = static_cast<const float*>(calls[b].result);
        if (first + calls[a].count <= second || second + calls[b].count <= first) continue;
        ++pairs;
        CHECK(order.before(a, b));
      }
    if (each.hook.kind != CommHookKind::noop) CHECK(pairs > 0);
  }
}

TEST_CASE("comm hooks on fake GPUs leave the gradients that the host's leave",
          "[backend][nccl][comm_hooks]") {
  for (const int ranks : {2, 3})
    for (const HookCase& each : gpu_hooks())
      for (const bool view : {false, true}) {
        CAPTURE(ranks, label(each.hook), view);
        const SmallJob job = gpu_job(ranks);
        Training training = training_of(each.hook);
        training.gradient_as_bucket_view = view;
        FakeLink link(ranks);
        std::mutex mutex;
        double worst = 0;
        CHECK(on_fakes(
                  ranks, {GpuLink::Mode::shared}, seconds{20},
                  [&](int) { return std::make_unique<FakeGpu>(&link); },
                  [&](Backend& backend) {
                    backend.load(job.workload, job.optimizer);
                    const double mine = worst_hook_error(backend, job, training, 4);
                    const std::lock_guard lock(mutex);
                    worst = std::max(worst, mine);
                    return 0;
                  }) == 0);
        CHECK(worst <= each.tolerance);
      }
}

TEST_CASE("R24: with a comm hook, copies into buckets do not divide; the hook does",
          "[backend][nccl][comm_hooks]") {
  const SmallJob job = gpu_job(2);
  // Nobody divides in a hook without steps: each rank ends with its own gradients.
  for (const CommHookKind kind : {CommHookKind::none, CommHookKind::noop}) {
    FakeLink link(2);
    std::atomic<int> kept = 0, divided = 0;
    CHECK(on_fakes(
              2, {GpuLink::Mode::shared}, seconds{20},
              [&](int) { return std::make_unique<FakeGpu>(&link); },
              [&](Backend& backend) {
                backend.load(job.workload, job.optimizer);
                backend.run(job.step(Strategy::none));
                const std::vector<float> own = backend.gradient(0);
                backend.run(job.step(training_of(hook_from_step_2(kind))));
                const std::vector<float> after = backend.gradient(0);
                ++(after == own ? kept : divided);
                return 0;
              }) == 0);
    CHECK((kind == CommHookKind::noop ? kept : divided) == 2);
  }
}

TEST_CASE("what GPUs do not run of comm hooks is refused before anything runs",
          "[backend][nccl][comm_hooks]") {
  const SmallJob job = gpu_job(2);
  CommHook topk = hook_from_step_2(CommHookKind::steps);
  topk.steps.resize(2);
  topk.steps[0].kind = OwnStep::Kind::topk;
  topk.steps[0].share = 0.1;
  topk.steps[1].kind = OwnStep::Kind::all_gather;
  CommHook plugin = hook_from_step_2(CommHookKind::plugin);
  plugin.plugin = "mine";
  CommHook wide = hook_from_step_2(CommHookKind::batched_powersgd);
  wide.powersgd.rank = 1000;
  for (const auto& [hook, text] : {std::pair{topk, "topk runs on the gloo backend only"},
                                   {plugin, "on the gloo backend only"},
                                   {wide, "more columns than rows"}}) {
    std::vector<GpuCall> calls;
    std::string said;
    bool aborted = false;
    CHECK(on_fakes(
              1, {GpuLink::Mode::loopback, 2}, seconds{5},
              [&](int) {
                auto gpu = std::make_unique<FakeGpu>();
                gpu->log = &calls;
                gpu->aborted = &aborted;
                return gpu;
              },
              [&](Backend& backend) {
                backend.load(job.workload, job.optimizer);
                calls.clear();
                try {
                  backend.run(job.step(training_of(hook)));
                } catch (const std::invalid_argument& problem) {
                  said = problem.what();
                }
                CHECK(calls.empty());
                backend.run(job.step(Strategy::bucketed));  // it is as good as before
                return 0;
              }) == 0);
    CHECK_THAT(said, Catch::Contains(text));
    CHECK(said.find('\n') == std::string::npos);
    CHECK_FALSE(aborted);
  }
}

TEST_CASE("R42: PowerSGD's host waits for the GPU before it goes on, three collectives in a row",
          "[backend][nccl][comm_hooks]") {
  using namespace std::chrono_literals;
  const SmallJob job = gpu_job(8);
  CommHook hook = hook_from_step_2(CommHookKind::powersgd);
  hook.powersgd.min_compression_rate = 1;
  const program::Job step = job.step(training_of(hook));
  const program::Program& program = step.programs.front();
  const GpuEvents events = events_of(step);
  RankRun run;
  std::vector<GpuCall> calls;
  CHECK(on_fakes(
            1, {GpuLink::Mode::loopback, 8}, seconds{20},
            [&](int) {
              auto gpu = std::make_unique<FakeGpu>();
              gpu->pace = {200us, 100us, 2ms, 0};
              gpu->log = &calls;
              return gpu;
            },
            [&](Backend& backend) {
              backend.load(job.workload, job.optimizer);
              calls.clear();
              run = backend.run(step);
              return 0;
            }) == 0);
  const auto event_at = [&](GpuCall::Kind kind, std::uint32_t task) {
    const auto found = std::find_if(calls.begin(), calls.end(), [&](const GpuCall& call) {
      return call.kind == kind && call.event == events.end(task);
    });
    REQUIRE(found != calls.end());
    return found - calls.begin();
  };
  std::vector<double> took;
  int synchronized = 0, aside = 0;
  std::vector<int> collectives(step.groups.size());
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const program::Task& task = program.tasks[t];
    const Work& work = step.works[task.work];
    const TaskTimes& times = run.times[t];
    const bool synchronizes = work.operation == Operation::synchronize;
    CHECK(times.start <= times.end);
    for (const std::uint32_t earlier : program.waits_for(t)) {
      if (task.stream != 0) CHECK(times.start >= run.times[earlier].end);
      // Nothing of the next task is enqueued before the host has seen that one's end.
      if (!synchronizes) continue;
      std::uint32_t next = t + 1;
      while (program.tasks[next].stream == 0) ++next;
      CHECK(event_at(GpuCall::Kind::seen, earlier) < event_at(GpuCall::Kind::record, next));
    }
    synchronized += synchronizes ? 1 : 0;
    if (is_collective(work.operation) && work.payload > Bytes{}) {
      ++collectives[at(step.deed_of(task).origin.group)];
      took.push_back(in_ms(times.end - times.start));
    }
    if (step.streams[task.stream].name == "aside") {
      ++aside;
      CHECK(times.end > times.start);
    }
  }
  CHECK(synchronized == static_cast<int>(step.groups.size()));
  CHECK(aside > 0);
  CHECK(std::count(collectives.begin(), collectives.end(), 3) > 0);
  // An exchange of 2 ms and a sum of 100 us; the fake GPU begins before the host is done issuing.
  std::sort(took.begin(), took.end());
  CHECK(took[took.size() / 2] == Approx(2.1).margin(0.5));
}

TEST_CASE("R44: the optimizer of a bucket runs aside, once the bucket is reduced",
          "[backend][nccl][comm_hooks]") {
  const SmallJob job = gpu_job(2);
  const program::Job step =
      job.step(training_of(hook_from_step_2(CommHookKind::optimizer_overlap)));
  const std::vector<GpuCall> calls = calls_of(job, step);
  const auto by_task = calls_by_task(step, calls);
  std::size_t updated = 0;
  for (std::size_t t = 0; t < step.programs.front().tasks.size(); ++t) {
    const program::Task& task = step.programs.front().tasks[t];
    if (!std::holds_alternative<program::Update>(step.deed_of(task).action)) continue;
    CHECK(step.streams[task.stream].name == "aside");
    for (const std::size_t call : by_task[t])
      if (calls[call].kind == GpuCall::Kind::work && calls[call].count > 0) ++updated;
  }
  CHECK(updated == job.workload.parameters.size());
}

TEST_CASE("what comm hooks compute on GPUs is measured without communication, and leaves no error",
          "[backend][nccl][comm_hooks]") {
  using namespace std::chrono_literals;
  const SmallJob job = gpu_job(2);
  CommHook hook = hook_from_step_2(CommHookKind::powersgd);
  hook.powersgd.min_compression_rate = 1;
  hook.wrappers = {DType::bf16};
  const Training training = training_of(hook);
  const std::vector<program::Job> steps{job.step(training)};
  MeasureOptions options;
  options.repeats = 1;
  options.largest = Bytes{4 << 10};
  std::set<Operation> measured;
  CHECK(on_fakes(
            1, {GpuLink::Mode::loopback, 2}, seconds{30},
            [&](int) {
              auto gpu = std::make_unique<FakeGpu>();
              gpu->pace = {50us, 20us, 100us, 0};
              return gpu;
            },
            [&](Backend& backend) {
              backend.load(job.workload, job.optimizer);
              backend.run(steps[0]);
              const std::vector<float> first = backend.gradient(0);
              const Calibration calibration =
                  measure_machine(backend, job.workload, steps, options, {});
              for (const MeasuredWork& task : calibration.tasks)
                if (task.time.median > Duration::zero()) measured.insert(task.operation);
              // What a step without communication left is dropped.
              backend.run(without_communication(steps[0]));
              backend.run(steps[0]);
              CHECK(backend.gradient(0) == first);  // as the first step ever
              return 0;
            }) == 0);
  for (const Operation operation : {Operation::cast, Operation::correct, Operation::pack,
                                    Operation::draw, Operation::multiply, Operation::orthogonalize})
    CHECK(measured.count(operation) == 1);
}

TEST_CASE("a seed that PowerSGD takes beside its steps is no launch",
          "[backend][nccl][comm_hooks]") {
  const SmallJob job = gpu_job(2);
  CommHook hook = hook_from_step_2(CommHookKind::powersgd);
  hook.powersgd.warm_start = false;  // each step draws, a bucket with nothing to draw for too
  Training training = training_of(hook);
  training.buckets.clear();
  for (int p = static_cast<int>(job.workload.parameters.size()); p-- > 0;)
    training.buckets.push_back({p});
  Training none = training;
  none.strategy = Strategy::none;
  const std::vector<program::Job> steps{job.step(none), job.step(training)};
  MeasureOptions options;
  options.repeats = 1;
  options.largest = Bytes{4 << 10};
  Duration launch{};
  CHECK(on_fakes(
            1, {GpuLink::Mode::loopback, 2}, seconds{30},
            [](int) { return std::make_unique<FakeGpu>(); },
            [&](Backend& backend) {
              backend.load(job.workload, job.optimizer);
              launch = measure_machine(backend, job.workload, steps, options, {}).launch.kernel;
              return 0;
            }) == 0);
  CHECK(launch > Duration::zero());
}

TEST_CASE("in loopback a comm hook moves a ring's share of its payload, and averages over one",
          "[backend][nccl][comm_hooks]") {
  const SmallJob job = gpu_job(8);
  for (const HookCase& each : gpu_hooks()) {
    if (each.hook.kind == CommHookKind::powersgd ||
        each.hook.kind == CommHookKind::batched_powersgd)
      continue;  // lossy beyond rounding
    CAPTURE(label(each.hook));
    const program::Job schedule = job.step(training_of(each.hook));
    std::vector<GpuCall> calls;
    double worst = 0, largest = 0;
    CHECK(on_fakes(
              1, {GpuLink::Mode::loopback, 8}, seconds{5},
              [&](int) {
                auto gpu = std::make_unique<FakeGpu>();
                gpu->log = &calls;
                return gpu;
              },
              [&](Backend& backend) {
                backend.load(job.workload, job.optimizer);
                std::vector<std::vector<float>> own;
                backend.run(job.step(Strategy::none));
                for (std::size_t p = 0; p < job.workload.parameters.size(); ++p)
                  own.push_back(backend.gradient(static_cast<int>(p)));
                calls.clear();
                backend.run(schedule);
                for (std::size_t p = 0; p < own.size(); ++p) {
                  const std::vector<float> got = backend.gradient(static_cast<int>(p));
                  for (std::size_t i = 0; i < got.size(); ++i) {
                    largest = std::max(largest, std::abs(static_cast<double>(own[p][i])));
                    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - own[p][i]));
                  }
                }
                return 0;
              }) == 0);
    CHECK(worst <= each.tolerance * largest);
    // Each collective is an exchange of what a ring makes one rank send.
    std::int64_t moved = 0;
    double expected = 0;
    for (const GpuCall& call : calls)
      if (call.kind == GpuCall::Kind::collective) moved += call.count;
    const FlatStep rows = flat(schedule);
    for (const FlatTask& task : rows.tasks) {
      const auto bytes = static_cast<double>(rows.work_of(task).payload.count);
      if (task.operation == Operation::all_reduce) expected += bytes * 2 * 7 / 8;
      if (task.operation == Operation::reduce_scatter) expected += bytes * 7 / 8;
      if (task.operation == Operation::all_gather) expected += bytes * 7;
      if (task.operation == Operation::broadcast) expected += bytes;
    }
    // Whole elements, parts rounded up.
    CHECK(std::abs(static_cast<double>(moved) - expected) <=
          64.0 * static_cast<double>(schedule.groups.size()));
  }
}

}  // namespace ddpsim
