// How fast the product's engine is. Run it on an idle machine, pinned to one core:
//
//     taskset -c 0 build/release/tests/ddpsim_benchmark

#include <benchmark/benchmark.h>

#include "model/parallel/order/build_job.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "sim/tune/tune.hpp"

namespace ddpsim {
namespace {

const std::string xl_scenario = DDPSIM_SCENARIOS "/seeds/cs336-xl-2xh100.yaml";

Training with(const Scenario& scenario, Strategy strategy) {
  Training training = scenario.training;
  training.strategy = strategy;
  return training;
}

struct Priced {
  program::Job job;
  JobCosts costs;
};

/// 64 ranks that are alike: long kernels back to back, each fourth followed by a collective that
/// slows the next ones, so that rates change all the time.
Priced many_changes() {
  constexpr std::uint32_t kernels = 100'000, lengths = 7;
  constexpr std::uint16_t ranks = 64;
  constexpr std::chrono::microseconds enqueueing{5};
  Priced priced;
  auto& [job, prices] = priced;
  job.streams = {{.name = "host"}, {.name = "compute"}, {"communication", true}};
  job.own.deeds = {{program::Compute{}}, {program::Collective{}}};
  job.program_of.assign(ranks, 0);
  job.communicators.emplace_back().groups.emplace_back();
  for (std::int32_t rank = 0; rank < ranks; ++rank) job.communicators[0].groups[0].push_back(rank);
  prices.of_rank.assign(ranks, 0);
  Costs& costs = prices.kinds.emplace_back();
  for (std::uint32_t i = 0; i < lengths; ++i) {
    job.works.push_back(moving(Operation::forward, Bytes{1 + i}));
    WorkCost& cost = costs.works.emplace_back();
    cost.host = cost.first_launch = enqueueing;
    cost.work = cost.last_launch = std::chrono::microseconds{20 + i};
  }
  job.works.emplace_back().operation = Operation::all_reduce;
  WorkCost& slowing = costs.works.emplace_back();
  slowing.host = slowing.first_launch = enqueueing;
  slowing.work = std::chrono::microseconds{30};
  slowing.beside = {1.2F, 1.3F, 2.0F};
  program::Program& step = job.programs.emplace_back();
  const auto add = [&](std::uint32_t work, bool sends) {
    if (sends) step.after.push_back(static_cast<std::uint32_t>(step.tasks.size()) - 1);
    step.tasks.push_back({.work = work,
                          .deed = sends ? 1U : 0U,
                          .after_end = static_cast<std::uint32_t>(step.after.size()),
                          .stream = static_cast<std::uint8_t>(sends ? 2 : 1)});
  };
  for (std::uint32_t i = 0; i < kernels; ++i) {
    add(i % lengths, false);
    if (i % 4 == 3) add(lengths, true);
  }
  return priced;
}

/// Events per second.
void engine_events(benchmark::State& state) {
  const auto [job, prices] = many_changes();
  std::uint64_t all = 0;
  for (auto _ : state) all += simulate(job, prices).events;
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(all), benchmark::Counter::kIsRate);
}
BENCHMARK(engine_events)->Unit(benchmark::kMillisecond);

/// One step, as a tuner would ask for it: works are found once, the rest is per call.
void plan_and_simulate(benchmark::State& state, const std::string& file, Strategy strategy) {
  const Scenario scenario = read_scenario(file);
  const StepModel model = model_of(scenario);
  const Training training = with(scenario, strategy);
  std::size_t tasks = 0;
  for (auto _ : state) {
    const PlannedStep planned = plan_step(model.works, training);
    benchmark::DoNotOptimize(step_length(model.costs, planned));
    tasks = planned.job.programs.front().tasks.size();
  }
  state.counters["tasks"] = static_cast<double>(tasks);
}

void plan_and_simulate_xl(benchmark::State& state) {
  plan_and_simulate(state, xl_scenario, Strategy::bucketed);
}
BENCHMARK(plan_and_simulate_xl)->Unit(benchmark::kMicrosecond);

/// Llama 3 8B, fully sharded on 64 ranks that are alike.
void plan_and_simulate_sharded(benchmark::State& state) {
  plan_and_simulate(state, DDPSIM_BENCHMARKS "/llama3-8b-64xh100.yaml", Strategy::fsdp);
}
BENCHMARK(plan_and_simulate_sharded)->Unit(benchmark::kMillisecond);

/// The job of a `bucketed` step of cs336-xl, with its costs.
void build_xl(benchmark::State& state) {
  const Scenario scenario = read_scenario(xl_scenario);
  const StepModel model = model_of(scenario);
  const Training training = with(scenario, Strategy::bucketed);
  for (auto _ : state) {
    const program::Job job = build_job(model.works, training);
    benchmark::DoNotOptimize(model.costs.price(job.works, job.passes).works.data());
  }
}
BENCHMARK(build_xl)->Unit(benchmark::kMicrosecond);

/// The job, arranged for the engine.
void plan_xl(benchmark::State& state) {
  const Scenario scenario = read_scenario(xl_scenario);
  const StepModel model = model_of(scenario);
  const Training training = with(scenario, Strategy::bucketed);
  for (auto _ : state) benchmark::DoNotOptimize(plan_step(model.works, training).job.ranks());
}
BENCHMARK(plan_xl)->Unit(benchmark::kMicrosecond);

/// Such a step that was planned before, as what-ifs and fits ask for it.
void simulate_xl(benchmark::State& state) {
  const Scenario scenario = read_scenario(xl_scenario);
  const StepModel model = model_of(scenario);
  const PlannedStep planned = plan_step(model.works, with(scenario, Strategy::bucketed));
  for (auto _ : state) benchmark::DoNotOptimize(step_length(model.costs, planned));
}
BENCHMARK(simulate_xl)->Unit(benchmark::kMicrosecond);

/// Full simulations of cs336-xl as the tuner makes them: another bucketing each time.
void tuner_steps_xl(benchmark::State& state) {
  const Scenario scenario = read_scenario(xl_scenario);
  const StepModel model = model_of(scenario);
  BucketSteps steps(model, scenario.training);
  std::vector<int> ends;
  int offset = 0;
  for (auto _ : state) {
    ends.clear();
    const auto gradients = static_cast<int>(state.range(0));
    for (int end = 1 + offset % gradients; end < steps.size(); end += gradients)
      ends.push_back(end);
    ends.push_back(steps.size());
    benchmark::DoNotOptimize(steps.of(ends));
    ++offset;
  }
  state.counters["steps/s"] =
      benchmark::Counter(static_cast<double>(steps.evaluated()), benchmark::Counter::kIsRate);
}
BENCHMARK(tuner_steps_xl)
    ->ArgName("gradients per bucket")
    ->Arg(1)
    ->Arg(5)
    ->Arg(50)
    ->Unit(benchmark::kMicrosecond);

/// `ddpsim tune` on cs336-xl: all caps, all pairs, the free partition and the bound; on one core.
void tune_xl(benchmark::State& state) {
  const Scenario scenario = read_scenario(xl_scenario);
  const StepModel model = model_of(scenario);
  std::uint64_t steps = 0;
  for (auto _ : state) steps += tune(model, scenario.training).evaluated;
  state.counters["steps/s"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate);
}
BENCHMARK(tune_xl)->Unit(benchmark::kMillisecond);

/// Sixty-four different ranks.
void simulate_64_ranks(benchmark::State& state) {
  const Scenario scenario = read_scenario(xl_scenario);
  StepModel model = model_of(scenario);
  model.works.device.ranks = 64;
  const PlannedStep planned = plan_step(model.works, with(scenario, Strategy::bucketed));
  const program::Job& job = planned.job;
  JobCosts costs;
  for (std::uint16_t rank = 0; rank < 64; ++rank) {
    Costs& its = costs.kinds.emplace_back(model.costs.price(job.works, job.passes));
    costs.of_rank.push_back(rank);
    for (std::size_t w = 0; w < job.works.size(); ++w)
      if (job.works[w].computes()) its.works[w].work += Duration{1000 * rank};
  }
  std::uint64_t all = 0;
  for (auto _ : state) all += simulate(job, planned.plans, costs).events;
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(all), benchmark::Counter::kIsRate);
}
BENCHMARK(simulate_64_ranks)->Unit(benchmark::kMillisecond);

void read_and_price_xl(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(model_of(read_scenario(xl_scenario)).costs.ranks);
}
BENCHMARK(read_and_price_xl)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ddpsim

BENCHMARK_MAIN();
