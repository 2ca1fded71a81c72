// Steps of fully_shard (rules F19-F40) and FullyShardedDataParallel (F72-F78), counted by hand.

#include <algorithm>
#include <memory>
#include <utility>

#include <catch2/catch.hpp>

#include "model/parallel/order/build_job.hpp"
#include "model/timeline/units.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/predict/predict.hpp"
#include "tests/model/workload/timed.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

struct TaskLengths {
  Duration gather{}, scatter{}, forward{}, backward{}, copy{}, cast{}, divide{};
};

struct PassEnds {
  Duration forward{}, step{};
  bool operator==(const PassEnds&) const = default;
};

struct TimedStep {
  program::Job job;
  JobTimeline timeline;
};

/// Four equal units, without a root's parameters; the host takes no time, and all is as long as
/// said.
TimedStep timed_step(const TaskLengths& lengths, Training training) {
  training.strategy = Strategy::fsdp;
  training.units = {{0}, {1}, {2}, {3}};
  Workload chain = timed::chain(4, 1ms, 1ms, MiB);
  if (training.mp_policy.param_dtype) {
    Workload cast = chain;
    for (Parameter& each : cast.parameters) each.dtype = *training.mp_policy.param_dtype;
    chain.cast = std::make_shared<const Workload>(std::move(cast));
  }
  const StepWorks works(chain, timed::ring(2, 1us, Bandwidth{1e9}), Optimizer::none);
  program::Job job = build_job(works, training);
  JobCosts costs;
  costs.of_rank = {0, 0};
  Costs& all = costs.kinds.emplace_back();
  for (const Work& work : job.works)
    all.works.emplace_back().work = work.operation == Operation::forward      ? lengths.forward
                                    : work.operation == Operation::backward   ? lengths.backward
                                    : work.operation == Operation::pack       ? lengths.copy
                                    : work.operation == Operation::cast       ? lengths.cast
                                    : work.operation == Operation::divide     ? lengths.divide
                                    : work.operation == Operation::all_gather ? lengths.gather
                                    : work.operation == Operation::reduce_scatter
                                        ? lengths.scatter
                                        : Duration::zero();
  for (WorkCost& each : all.works) each.latency = each.work;  // which is not shared
  JobTimeline timeline = simulate(job, costs);
  return {std::move(job), std::move(timeline)};
}

PassEnds pass_ends(const TaskLengths& lengths, const Training& training) {
  const auto [job, timeline] = timed_step(lengths, training);
  PassEnds found;
  const program::Program& program = job.programs.front();
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    const Duration end = timeline.classes.front()[t].end.time_since_epoch();
    found.step = std::max(found.step, end);
    if (job.works[program.tasks[t].work].operation == Operation::forward)
      found.forward = std::max(found.forward, end);
  }
  return found;
}

}  // namespace

TEST_CASE("steps of fully_shard take what counting them by hand gives", "[sim][fsdp]") {
  const TaskLengths computes{4ms, 4ms, 10ms, 20ms, 0ms}, sends{10ms, 10ms, 6ms, 12ms, 0ms},
      copies{4ms, 4ms, 10ms, 20ms, 1ms};
  Training usual, kept, apart, two;
  usual.reshard_after_forward = true;
  kept.reshard_after_forward = false;
  apart = usual;
  apart.separate_reduce_scatter_group = true;
  two = apart;
  two.reduce_scatter_max_input_buffers = 2;
  Training last_kept = usual;
  last_kept.unit_settings.resize(4);
  last_kept.unit_settings[3].reshard_after_forward = false;
  CHECK(pass_ends(computes, last_kept) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(sends, last_kept) == PassEnds{46ms, 120ms});
  CHECK(pass_ends(copies, last_kept) == PassEnds{49ms, 140ms});
  // F23: with a host that takes no time, issuing gathers before kernels changes nothing.
  Training ahead = usual;
  ahead.forward_prefetch = 1;
  CHECK(pass_ends(computes, ahead) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(sends, ahead) == PassEnds{46ms, 124ms});
  CHECK(pass_ends(computes, usual) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(computes, kept) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(computes, apart) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(computes, two) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(sends, usual) == PassEnds{46ms, 124ms});
  CHECK(pass_ends(sends, kept) == PassEnds{46ms, 104ms});
  CHECK(pass_ends(sends, apart) == PassEnds{46ms, 108ms});
  CHECK(pass_ends(sends, two) == PassEnds{46ms, 108ms});
  CHECK(pass_ends(copies, usual) == PassEnds{49ms, 141ms});
  CHECK(pass_ends(copies, kept) == PassEnds{49ms, 137ms});
  CHECK(pass_ends(copies, apart) == PassEnds{49ms, 141ms});
  CHECK(pass_ends(copies, two) == PassEnds{49ms, 141ms});
  // Casts of 1 ms: the first gather begins after one, and the end comes one after the last
  // reduce-scatter. Where sending bounds the step, so does the first gather of backward, which
  // begins after one.
  TaskLengths casts_and_computes = computes, casts_and_sends = sends;
  casts_and_computes.cast = casts_and_sends.cast = 1ms;
  Training mixed = usual;
  mixed.mp_policy.param_dtype = DType::bf16;
  CHECK(pass_ends(casts_and_computes, mixed) == PassEnds{45ms, 130ms});
  CHECK(pass_ends(casts_and_sends, mixed) == PassEnds{47ms, 127ms});
}

TEST_CASE("steps of FullyShardedDataParallel take what counting them by hand gives",
          "[sim][fsdp]") {
  const TaskLengths computes{4ms, 4ms, 10ms, 20ms, 0ms}, sends{10ms, 10ms, 6ms, 12ms, 0ms};
  Training usual;
  usual.fsdp.variant = FsdpVariant::fsdp1;
  Training kept = usual, late = usual, never = usual, ahead = usual;
  kept.fsdp.sharding_strategy = ShardingStrategy::shard_grad_op;
  late.fsdp.backward_prefetch = BackwardPrefetch::post;
  never.fsdp.backward_prefetch = BackwardPrefetch::none;
  ahead.fsdp.forward_prefetch = true;
  // The order on the wire is fully_shard's, and no copy is in the way.
  CHECK(pass_ends(computes, usual) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(sends, usual) == PassEnds{46ms, 124ms});
  CHECK(pass_ends(computes, kept) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(sends, kept) == PassEnds{46ms, 104ms});
  // F75: later, but a host that takes no time issues it as early.
  CHECK(pass_ends(computes, late) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(sends, late) == PassEnds{46ms, 124ms});
  // One behind the other: of the first case, from the end of forward, four times B and RS, and
  // three gathers: 44 + 4 (20 + 4) + 3 x 4 ms. Of the second one the first gather, which begins
  // behind the fourth of forward, as well: 40 + 4 (10 + 12 + 10) ms.
  CHECK(pass_ends(computes, never) == PassEnds{44ms, 152ms});
  CHECK(pass_ends(sends, never) == PassEnds{46ms, 168ms});
  // Each reduce-scatter comes a unit later. On the wire, from 40 ms: AG3 AG2 AG1 to 70, RS3 behind
  // B2 74-84, AG0 84-94, RS2 94-104, RS1 behind B0 106-116, RS0 116-126.
  CHECK(pass_ends(sends, ahead) == PassEnds{46ms, 126ms});
  // F77: two ranks divide once, before: 1 ms behind the last kernel. Where sending bounds the step
  // RS3 begins 1 ms later and all behind it, and so does RS0 behind B0.
  TaskLengths divides_and_computes = computes, divides_and_sends = sends;
  divides_and_computes.divide = divides_and_sends.divide = 1ms;
  CHECK(pass_ends(divides_and_computes, usual) == PassEnds{44ms, 129ms});
  CHECK(pass_ends(divides_and_sends, usual) == PassEnds{46ms, 126ms});
}

TEST_CASE("F76: the host waits for the unit freed before the last two", "[sim][fsdp]") {
  // Four gathers of forward of 4 ms each beside kernels of 10 ms a unit. Events of the step before
  // are three, so the host waits first for what the first unit leaves, before it issues the fourth
  // gather: at 4 + 10 ms, and not at 12.
  const TaskLengths computes{4ms, 4ms, 10ms, 20ms, 0ms};
  for (const bool limits : {true, false}) {
    Training training;
    training.fsdp.variant = FsdpVariant::fsdp1;
    training.fsdp.limit_all_gathers = limits;
    const auto step = timed_step(computes, training);
    std::vector<Instant> gathers;
    const auto& tasks = step.job.programs.front().tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t)
      if (step.job.works[tasks[t].work].operation == Operation::all_gather)
        gathers.push_back(step.timeline.classes.front()[t].start);
    REQUIRE(gathers.size() == 8);
    CHECK(gathers[2] == Instant{8ms});
    CHECK(gathers[3] == Instant{limits ? 14ms : 12ms});
    // The first one of backward waits for the second unit, which ends at 24 ms.
    CHECK(gathers[4] == Instant{limits ? 24ms : 16ms});
  }
}

TEST_CASE(
    "with one queue the backward pass waits for reduce-scatters, the forward pass for nothing",
    "[sim][fsdp]") {
  // Of four units the gathers of the first two are issued behind a reduce-scatter, and the kernels
  // behind them: those of the third and the second unit begin when it has ended, 4 ms later each.
  // github.com/verl-project/verl-omni/issues/421 saw the same: gathers overlapped with kernels, and
  // reduce-scatters with none.
  const TaskLengths computes{4ms, 4ms, 10ms, 20ms, 0ms};
  Training usual, one;
  usual.reshard_after_forward = true;
  one = usual;
  one.cuda_device_max_connections = 1;
  CHECK(pass_ends(computes, usual) == PassEnds{44ms, 128ms});
  CHECK(pass_ends(computes, one) == PassEnds{44ms, 136ms});
  // Nothing is gathered in the backward pass: nothing waits for a reduce-scatter.
  one.reshard_after_forward = false;
  CHECK(pass_ends(computes, one) == PassEnds{44ms, 128ms});
  // In a communicator of their own reduce-scatters hold up no gather, and so no kernel.
  one.reshard_after_forward = true;
  one.separate_reduce_scatter_group = true;
  CHECK(pass_ends(computes, one) == PassEnds{44ms, 128ms});
}

TEST_CASE("what kernels wait for in one queue is told as that", "[sim][fsdp][why]") {
  // As above: two reduce-scatters of 4 ms hold up the kernels behind them, and would hide.
  const TaskLengths computes{4ms, 4ms, 10ms, 20ms, 0ms};
  for (const int queues : {8, 1}) {
    CAPTURE(queues);
    Training training;
    training.reshard_after_forward = true;
    training.cuda_device_max_connections = queues;
    const auto step = timed_step(computes, training);
    Duration queued{}, gradients{}, exposed{};
    for (const UnitCollective& each : unit_collectives(step.job, step.timeline, 0)) {
      queued += each.why.by(Cause::one_queue);
      gradients += each.why.by(Cause::gradients);
      exposed += each.why.times.exposed;
    }
    CHECK(queued == (queues == 1 ? 8ms : 0ms));
    CHECK(gradients == 4ms);         // the last one's
    CHECK(exposed == queued + 8ms);  // and the first gather
  }
}

TEST_CASE("in one queue tasks begin in the order in which they are issued", "[sim][fsdp]") {
  for (const bool apart : {false, true})
    for (const Duration sending : {0ms, 3ms, 17ms, 50ms}) {
      CAPTURE(apart, in_ms(sending));
      Training training;
      training.reshard_after_forward = true;
      training.cuda_device_max_connections = 1;
      training.separate_reduce_scatter_group = apart;
      const auto step = timed_step({sending, sending, 10ms, 20ms, 1ms}, training);
      Instant before{};
      for (std::size_t t = 0; t < step.job.programs.front().tasks.size(); ++t) {
        if (step.job.programs.front().tasks[t].stream == 0) continue;  // the host's own
        const Instant begun = step.timeline.classes.front()[t].start;
        CHECK(begun >= before);
        before = begun;
      }
    }
}

}  // namespace ddpsim
