#include "model/parallel/order/user_hook_tasks.hpp"

#include <catch2/catch.hpp>

#include "tests/model/cost/priced.hpp"
#include "tests/model/parallel/schedule_story.hpp"
#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

UserHook on_gradients(UserHookKind kind, std::vector<std::vector<std::int32_t>> groups) {
  UserHook hook;
  hook.kind = kind;
  hook.value = 1;
  hook.groups = std::move(groups);
  return hook;
}

UserHook on_layer(std::int32_t layer, Bytes output) {
  UserHook hook;
  hook.kind = UserHookKind::chunks;
  hook.chunks.count = 4;
  hook.chunks.threads = 3;
  hook.layers = {layer};
  hook.outputs = {output};
  return hook;
}

Training with(std::vector<UserHook> hooks) {
  Training training;
  training.buckets = {{2, 1}, {0}};
  training.hooks = std::move(hooks);
  return training;
}

/// From the first backward kernel to the first that follows it.
Story first_hooks(const FlatStep& schedule) {
  const Story lines = story(schedule);
  const auto from = std::find(lines.begin(), lines.end(), "backward 1.0");
  return {from, std::find(from, lines.end(), "backward 1.1")};
}

}  // namespace

TEST_CASE("a gradient meets the user's hooks in their order, then DDP's",
          "[model][user_hook_tasks]") {
  const FlatStep schedule = flat_step(
      two_layer_works(),
      with({on_gradients(UserHookKind::scale, {{1}, {0}}), on_gradients(UserHookKind::noise, {{1}}),
            on_gradients(UserHookKind::record, {{2}})}));
  CHECK(first_hooks(schedule) == Story{"backward 1.0", "gradient hook 2", "hook 2 -> 0",
                                       "copy in 2 -> 0", "gradient hook 1", "gradient hook 1",
                                       "hook 1 -> 0", "copy in 1 -> 0", "all-reduce 0"});
  std::vector<std::int32_t> order;
  for (const FlatTask& task : schedule.tasks)
    if (task.user_hook != nobody) order.push_back(task.user_hook);
  CHECK(order == std::vector<std::int32_t>{2, 0, 1, 0});
}

TEST_CASE("a layer's gradients are clipped together, and reach DDP then",
          "[model][user_hook_tasks]") {
  const FlatStep schedule =
      flat_step(two_layer_works(), with({on_gradients(UserHookKind::clip, {{0}, {1, 2}}),
                                         on_gradients(UserHookKind::scale, {{2}})}));
  // Parameter 2 arrives first and waits for 1; what is asked for after the clip follows it.
  CHECK(first_hooks(schedule) == Story{"backward 1.0", "gradient hook 1", "gradient hook 2",
                                       "hook 2 -> 0", "copy in 2 -> 0", "hook 1 -> 0",
                                       "copy in 1 -> 0", "all-reduce 0"});
}

TEST_CASE("a clip does not wait for a gradient that never comes", "[model][user_hook_tasks]") {
  StepWorks works = two_layer_works();
  auto& fired = works.layers[1].completes[0];  // of b no kernel makes a gradient
  fired.erase(std::find(fired.begin(), fired.end(), 1));
  Training training = with({on_gradients(UserHookKind::clip, {{1, 2}, {0}})});
  training.strategy = Strategy::none;
  CHECK(first_hooks(flat_step(works, training)) == Story{"backward 1.0", "gradient hook 2"});
}

TEST_CASE("two hooks on one layer's gradients take turns", "[model][user_hook_tasks]") {
  const FlatStep schedule = flat_step(
      two_layer_works(),
      with({on_gradients(UserHookKind::scale, {{2}}), on_gradients(UserHookKind::clip, {{1, 2}}),
            on_gradients(UserHookKind::clip, {{1, 2}})}));
  CHECK(first_hooks(schedule) == Story{"backward 1.0", "gradient hook 2", "gradient hook 1",
                                       "gradient hook 1", "hook 2 -> 0", "copy in 2 -> 0",
                                       "hook 1 -> 0", "copy in 1 -> 0", "all-reduce 0"});
}

TEST_CASE("a hook fires in every micro-batch, on its gradient before it is added",
          "[model][user_hook_tasks]") {
  for (const Strategy strategy : replicating_strategies)
    for (const bool no_sync : {false, true}) {
      CAPTURE(name_of(strategy), no_sync);
      Training training = with({on_gradients(UserHookKind::scale, {{0}, {1}, {2}})});
      training.strategy = strategy;
      training.micro_batches = 2;
      training.no_sync = no_sync;
      const FlatStep schedule = flat_step(two_layer_works(), training);
      CHECK(count(schedule, Operation::gradient_hook, 0) == 3);
      CHECK(count(schedule, Operation::gradient_hook, 1) == 3);
      for (std::size_t i = 0; i < schedule.tasks.size(); ++i)
        if (schedule.tasks[i].operation == Operation::accumulate) {
          CHECK(schedule.tasks[i - 1].operation == Operation::gradient_hook);
          CHECK(schedule.tasks[i - 1].parameter == schedule.tasks[i].parameter);
        }
    }
}

TEST_CASE("a tied parameter's hook fires once, when the last of its uses is behind it",
          "[model][user_hook_tasks]") {
  const Workload workload = architectures::build(architectures::gpt2_small);
  Training training;
  training.hooks = {on_gradients(UserHookKind::scale, {{0}})};  // wte, which is the head as well
  const FlatStep schedule = flat_step(works_of(workload, two_ranks()), training);
  REQUIRE(count(schedule, Operation::gradient_hook) == 1);
  const auto fired =
      std::find_if(schedule.tasks.begin(), schedule.tasks.end(),
                   [](const FlatTask& t) { return t.operation == Operation::gradient_hook; });
  const Parameter& tied = workload.parameters[0];
  CHECK((fired - 1)->operation == Operation::backward);
  CHECK((fired - 1)->layer == tied.layer);
  CHECK(tied.layer == 0);  // the embedding's use comes last in backward, the head's first
}

TEST_CASE("a hook costs its passes over the gradient and its firing", "[model][user_hook_tasks]") {
  // 1 TB/s: b has 400 bytes.
  CostModel model(two_ranks());
  model.launch.hook = 7us;
  const auto cost_of_hook = [&](const UserHook& hook) {
    const Priced step = priced(two_layer_works(), model, with({hook}));
    const auto fired = std::find_if(
        step.schedule.tasks.begin(), step.schedule.tasks.end(),
        [](const FlatTask& task) { return task.operation == Operation::gradient_hook; });
    return step.of(*fired);
  };
  const auto ramps = [](int launches) { return launches * Duration{3200ns}; };
  CHECK(cost_of_hook(on_gradients(UserHookKind::scale, {{1}})).work == ramps(1) + Duration{800});
  CHECK(cost_of_hook(on_gradients(UserHookKind::decay, {{1}})).work == ramps(1) + Duration{1200});
  CHECK(cost_of_hook(on_gradients(UserHookKind::noise, {{1}})).work == ramps(2) + Duration{1600});
  CHECK(cost_of_hook(on_gradients(UserHookKind::clip, {{1}})).work == ramps(3) + Duration{1200});
  CHECK(cost_of_hook(on_gradients(UserHookKind::clip, {{1, 2}})).work == ramps(3) + Duration{1320});
  const WorkCost recorded = cost_of_hook(on_gradients(UserHookKind::record, {{1}}));
  CHECK(recorded.work == Duration::zero());
  CHECK(recorded.host == 7us);
  UserHook plugin = on_gradients(UserHookKind::plugin, {{1}});
  plugin.passes = 10;
  plugin.launches = 5;
  plugin.host = 100us;
  CHECK(cost_of_hook(plugin).work == ramps(5) + Duration{4000});
  CHECK(cost_of_hook(plugin).host == 107us);
}

TEST_CASE("a layer's output in chunks is the host's work, and a GPU's goes there and back",
          "[model][user_hook_tasks]") {
  const Training training = with({on_layer(0, Bytes{1'000'000})});
  const Priced on_cpus = priced(two_layers(), two_ranks(true), training);
  const FlatStep& cpu = on_cpus.schedule;
  const Story on_cpu = story(cpu);
  CHECK(Story(on_cpu.begin(), on_cpu.begin() + 3) ==
        Story{"forward 0.0", "module hook 0.0", "forward 1.0"});
  CHECK(cpu.tasks[1].stream == StepStream::host);
  CHECK(on_cpus.of(cpu.tasks[1]).work == 240us);

  const Priced on_gpus = priced(two_layers(), two_ranks(), training);
  const FlatStep& gpu = on_gpus.schedule;
  const Story on_gpu = story(gpu);
  CHECK(Story(on_gpu.begin(), on_gpu.begin() + 5) == Story{"forward 0.0", "module hook 0.0",
                                                           "module hook 0.0", "module hook 0.0",
                                                           "forward 1.0"});
  CHECK(gpu.tasks[1].stream == StepStream::compute);
  CHECK(on_gpus.of(gpu.tasks[1]).work >= Duration{40us});  // 1 MB at 25 GB/s
  CHECK(gpu.tasks[2].stream == StepStream::host);
  CHECK(gpu.host_waits(gpu.tasks[2]));
  CHECK(on_gpus.of(gpu.tasks[2]).host == 240us);
  REQUIRE(gpu.waits_for(gpu.tasks[2]).size() == 1);
  CHECK(gpu.waits_for(gpu.tasks[2])[0] == 1);
  CHECK(gpu.tasks[3].stream == StepStream::compute);
}
