// Micro-batches, unused parameters, buffers, the first iteration: what changes the order of a step.
#include <catch2/catch.hpp>

#include "tests/model/cost/priced.hpp"
#include "tests/model/flat_step.hpp"
#include "tests/model/parallel/schedule_story.hpp"
#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

StepWorks on_two_ranks(const Workload& workload) {
  return works_of(workload, two_ranks());
}

Training bucketed(int micro_batches, bool no_sync) {
  Training training;
  training.buckets = {{2, 1}, {0}};
  training.micro_batches = micro_batches;
  training.no_sync = no_sync;
  return training;
}

}  // namespace

TEST_CASE("R26: every micro-batch communicates, or with no_sync the last", "[model][build_job]") {
  const bool no_sync = GENERATE(false, true);
  const FlatStep schedule = flat_step(two_layer_works(), bucketed(3, no_sync));
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    CAPTURE(no_sync, micro_batch);
    const int synced = !no_sync || micro_batch == 2 ? 1 : 0;
    CHECK(count(schedule, Operation::forward, micro_batch) == 2);
    CHECK(count(schedule, Operation::backward, micro_batch) == 3);
    CHECK(count(schedule, Operation::hook, micro_batch) == 3 * synced);
    CHECK(count(schedule, Operation::copy_in, micro_batch) == 3 * synced);
    CHECK(count(schedule, Operation::all_reduce, micro_batch) == 2 * synced);
    CHECK(count(schedule, Operation::wait, micro_batch) == 2 * synced);
    CHECK(count(schedule, Operation::copy_out, micro_batch) == 3 * synced);
  }
  CHECK(count(schedule, Operation::optimizer) == 1);
}

TEST_CASE("every strategy communicates in each micro-batch unless told otherwise",
          "[model][build_job]") {
  const auto reduces = [](Strategy strategy, bool no_sync) {
    Training training = bucketed(4, no_sync);
    training.strategy = strategy;
    return count(flat_step(two_layer_works(), training), Operation::all_reduce);
  };
  CHECK(reduces(Strategy::none, false) == 0);
  CHECK(reduces(Strategy::naive, false) == 4 * 3);
  CHECK(reduces(Strategy::flat, false) == 4 * 1);
  CHECK(reduces(Strategy::overlap, false) == 4 * 3);
  CHECK(reduces(Strategy::naive, true) == 3);
  CHECK(reduces(Strategy::flat, true) == 1);
  CHECK(reduces(Strategy::overlap, true) == 3);
}

TEST_CASE("R27: gradients add up from the second micro-batch on", "[model][build_job]") {
  for (const Strategy strategy : all_strategies) {
    if (strategy == Strategy::zero2 || strategy == Strategy::zero3) continue;  // have no no_sync
    CAPTURE(name_of(strategy));
    Training training = bucketed(3, true);
    training.strategy = strategy;
    const FlatStep schedule = flat_step(two_layer_works(), training);
    CHECK(count(schedule, Operation::accumulate, 0) == 0);
    CHECK(count(schedule, Operation::accumulate, 1) == 3);
    CHECK(count(schedule, Operation::accumulate, 2) == 3);
  }
  // The sum is complete before its hook copies it.
  const FlatStep schedule = flat_step(two_layer_works(), bucketed(2, true));
  const Story lines = story(schedule);
  const auto first = std::find(lines.begin(), lines.end(), "hook 2 -> 0");
  REQUIRE(first != lines.begin());
  CHECK(*(first - 1) == "accumulate 2");
}

TEST_CASE("each micro-batch's buckets fill anew", "[model][build_job]") {
  const FlatStep schedule = flat_step(two_layer_works(), bucketed(2, false));
  std::vector<std::int32_t> launched;
  for (const FlatTask& task : schedule.tasks)
    if (task.operation == Operation::all_reduce) launched.push_back(task.bucket);
  CHECK(launched == std::vector<std::int32_t>{0, 1, 0, 1});
}

TEST_CASE("R30: the host searches for unused parameters before a synchronised backward",
          "[model][build_job]") {
  Workload workload = two_layers();
  workload.layers[0].forward[0].launches = 40;  // autograd nodes, a microsecond each
  Training training = bucketed(2, true);
  training.find_unused_parameters = true;
  const Priced step = priced(workload, two_ranks(), training);
  const FlatStep& schedule = step.schedule;
  CHECK(count(schedule, Operation::search_unused, 0) == 0);
  REQUIRE(count(schedule, Operation::search_unused, 1) == 1);
  const Story lines = story(schedule);
  const auto search = std::find(lines.begin(), lines.end(), "search unused");
  CHECK(*(search - 1) == "forward 1.0");
  CHECK(*(search + 1) == "backward 1.0");
  const FlatTask& task = schedule.tasks[static_cast<std::size_t>(search - lines.begin())];
  CHECK(task.stream == StepStream::host);
  CHECK(step.of(task).host == 41us);

  training.static_graph = true;  // known after the first iteration
  CHECK(count(flat_step(two_layer_works(), training), Operation::search_unused) == 0);
  training.static_graph = false;
  training.strategy = Strategy::overlap;  // not DistributedDataParallel
  CHECK(count(flat_step(two_layer_works(), training), Operation::search_unused) == 0);
}

TEST_CASE("the first iteration reduces one bucket per dtype after its last gradient",
          "[model][build_job]") {
  Training training;
  training.iteration = 1;
  training.bucket_cap = Bytes{1};
  const FlatStep one = flat_step(two_layer_works(), training);
  REQUIRE(one.buckets.size() == 1);
  CHECK(one.buckets[0].size == Bytes{4440});
  CHECK(waits_for(one, "all-reduce 0") == Story{"copy in 0 -> 0"});

  // b in bf16: by smallest index the fp32 bucket [0, 2] comes first, and the list is reversed.
  Workload mixed = two_layers();
  mixed.parameters[1].dtype = DType::bf16;
  const FlatStep two = flat_step(on_two_ranks(mixed), training);
  REQUIRE(two.buckets.size() == 2);
  CHECK(two.buckets[0].parameters == std::vector<std::int32_t>{1});
  CHECK(two.buckets[1].parameters == std::vector<std::int32_t>{0, 2});
  CHECK(waits_for(two, "all-reduce 0") == Story{"copy in 1 -> 0"});
  CHECK(waits_for(two, "all-reduce 1") == Story{"copy in 0 -> 1"});
}

TEST_CASE("R29: DDP broadcasts each type of buffer before forward", "[model][build_job]") {
  // ResNet-18's batch norms: running statistics of one type, counters of another.
  const StepWorks resnet = on_two_ranks(architectures::build(architectures::resnet18));
  const FlatStep schedule = flat_step(resnet, Training{});
  CHECK(count(schedule, Operation::broadcast) == 2);
  const Story lines = story(schedule);
  CHECK(Story(lines.begin(), lines.begin() + 9) == Story{"concatenate", "broadcast", "concatenate",
                                                         "broadcast", "wait", "copy out", "wait",
                                                         "copy out", "forward 0.0"});
  Training training;
  training.broadcast_buffers = false;
  CHECK(count(flat_step(resnet, training), Operation::broadcast) == 0);
  for (const Strategy strategy :
       {Strategy::none, Strategy::naive, Strategy::flat, Strategy::overlap})
    CHECK(count(flat_step(resnet, training_of(strategy)), Operation::broadcast) == 0);
}

TEST_CASE("R29: two groups of buffers are on their way at most", "[model][build_job]") {
  Workload workload = architectures::build(architectures::resnet18);
  workload.buffers = {{7, Bytes{700 << 20}}};
  const FlatStep schedule = flat_step(on_two_ranks(workload), Training{});
  const Story lines = story(schedule);
  CHECK(Story(lines.begin(), lines.begin() + 13) ==
        Story{"concatenate", "broadcast", "concatenate", "broadcast", "wait", "copy out",
              "concatenate", "broadcast", "wait", "copy out", "wait", "copy out", "forward 0.0"});
  std::vector<std::int32_t> awaited;  // groups
  for (const FlatTask& task : schedule.tasks)
    if (task.operation == Operation::wait && schedule.work_of(task).message == Message::buffers)
      awaited.push_back(schedule.tasks[schedule.waits_for(task).front()].kernel);
  CHECK(awaited == std::vector<std::int32_t>{0, 1, 2});
}

TEST_CASE("R29: buffers are broadcast 250 MiB at a time", "[model][build_job]") {
  Workload workload = architectures::build(architectures::resnet18);
  workload.buffers = {{7, Bytes{700 << 20}}};
  const std::vector<BufferGroup> parts = cut(workload.buffers);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].size == Bytes{300 << 20});  // with the third tensor it is past the limit
  CHECK(parts[1].size == Bytes{300 << 20});
  CHECK(parts[2].size == Bytes{100 << 20});
  CHECK(parts[2].tensors == 1);
  CHECK(count(flat_step(on_two_ranks(workload), Training{}), Operation::broadcast) == 3);
  CHECK(cut({{2, Bytes{250 << 20}}}).size() == 1);
  CHECK(cut({{1, Bytes{900 << 20}}}).size() == 1);  // a tensor is never cut
  CHECK(cut({{0, Bytes{}}}).size() == 1);
}

TEST_CASE("R28: a forward after one inside no_sync broadcasts nothing", "[model][build_job]") {
  // The first of a step follows the synchronised last one of the step before.
  const StepWorks resnet = on_two_ranks(architectures::build(architectures::resnet18));
  Training training;
  training.micro_batches = 3;
  FlatStep schedule = flat_step(resnet, training);
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch)
    CHECK(count(schedule, Operation::broadcast, micro_batch) == 2);
  training.no_sync = true;
  schedule = flat_step(resnet, training);
  CHECK(count(schedule, Operation::broadcast, 0) == 2);
  CHECK(count(schedule, Operation::broadcast, 1) == 0);
  CHECK(count(schedule, Operation::broadcast, 2) == 0);
}
