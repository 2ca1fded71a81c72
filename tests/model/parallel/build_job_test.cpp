#include "model/parallel/order/build_job.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "model/parallel/check_for_ranks.hpp"
#include "model/parallel/policy/refusals.hpp"
#include "tests/model/cost/priced.hpp"
#include "tests/model/parallel/schedule_story.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

const Story forward{"forward 0.0", "forward 1.0"};
const Story backward{"backward 1.0", "backward 1.1", "backward 0.0"};

Story operator+(Story a, const Story& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Throws if real ranks cannot carry out the step.
void check_on_ranks(const Training& training) {
  check_for_ranks(build_job(two_layer_works(), training), training, two_layers());
}

/// Bucketed: parameters 2 and 1 in bucket 0, parameter 0 in bucket 1.
Training two_buckets() {
  Training training;
  training.buckets = {{2, 1}, {0}};
  return training;
}

}  // namespace

TEST_CASE("without communication a step is forward, backward and optimizer", "[model][build_job]") {
  const FlatStep schedule = flat_step(two_layer_works(), training_of(Strategy::none));
  CHECK(story(schedule) == forward + backward + Story{"optimizer"});
  CHECK(schedule.buckets.empty());
}

TEST_CASE("naive reduces and divides one parameter after the other", "[model][build_job]") {
  const FlatStep schedule = flat_step(two_layer_works(), training_of(Strategy::naive));
  CHECK(story(schedule) == forward + backward +
                               Story{"all-reduce 0", "wait 0", "divide 0 -> 0", "all-reduce 1",
                                     "wait 1", "divide 1 -> 1", "all-reduce 2", "wait 2",
                                     "divide 2 -> 2", "optimizer"});
  CHECK(waits_for(schedule, "all-reduce 0") == Story{"backward 0.0"});
  CHECK(waits_for(schedule, "wait 0") == Story{"all-reduce 0"});
  CHECK(waits_for(schedule, "all-reduce 1") == Story{"divide 0 -> 0"});
  CHECK(schedule.buckets[0].size == Bytes{4000});
  CHECK(schedule.buckets[2].size == Bytes{40});
}

TEST_CASE("flat reduces one buffer of all gradients", "[model][build_job]") {
  const FlatStep schedule = flat_step(two_layer_works(), training_of(Strategy::flat));
  CHECK(story(schedule) == forward + backward +
                               Story{"concatenate 0", "all-reduce 0", "wait 0", "divide 0",
                                     "copy out 2 -> 0", "copy out 1 -> 0", "copy out 0 -> 0",
                                     "optimizer"});
  CHECK(waits_for(schedule, "all-reduce 0") == Story{"concatenate 0"});
  CHECK(schedule.buckets.at(0).size == Bytes{4440});
}

TEST_CASE("overlap launches every gradient from its hook and divides after backward",
          "[model][build_job]") {
  const FlatStep schedule = flat_step(two_layer_works(), training_of(Strategy::overlap));
  // Buckets in the order of arrival: parameters 2, 1, 0.
  CHECK(story(schedule) == forward + Story{"backward 1.0", "hook 2 -> 0", "all-reduce 0",
                                           "hook 1 -> 1", "all-reduce 1", "backward 1.1",
                                           "backward 0.0", "hook 0 -> 2", "all-reduce 2", "wait 0",
                                           "divide 2 -> 0", "wait 1", "divide 1 -> 1", "wait 2",
                                           "divide 0 -> 2", "optimizer"});
  CHECK(waits_for(schedule, "all-reduce 1") == Story{"backward 1.0"});
  CHECK(waits_for(schedule, "all-reduce 2") == Story{"backward 0.0"});
  CHECK(waits_for(schedule, "wait 2") == Story{"all-reduce 2"});
}

TEST_CASE("R20, R21, R24: DDP divides into buckets, reduces full ones, copies back",
          "[model][build_job]") {
  const FlatStep schedule = flat_step(two_layer_works(), two_buckets());
  CHECK(story(schedule) == forward + Story{"backward 1.0", "hook 2 -> 0", "copy in 2 -> 0",
                                           "hook 1 -> 0", "copy in 1 -> 0", "all-reduce 0",
                                           "backward 1.1", "backward 0.0", "hook 0 -> 1",
                                           "copy in 0 -> 1", "all-reduce 1", "wait 0",
                                           "copy out 2 -> 0", "copy out 1 -> 0", "wait 1",
                                           "copy out 0 -> 1", "optimizer"});
  // The division is part of the copy in: nothing divides after the sum.
  CHECK(waits_for(schedule, "all-reduce 0") == Story{"copy in 1 -> 0"});
  CHECK(waits_for(schedule, "all-reduce 1") == Story{"copy in 0 -> 1"});
  CHECK(count(schedule, Operation::divide) == 0);
}

TEST_CASE("R16: a bucket ready early waits for its turn", "[model][build_job]") {
  // Parameter 0, the last to arrive, is in the first bucket: both are launched behind it, at once.
  Training training;
  training.buckets = {{0}, {2, 1}};
  const Story lines = story(flat_step(two_layer_works(), training));
  const auto first = std::find(lines.begin(), lines.end(), "copy in 0 -> 0");
  REQUIRE(lines.end() - first > 2);
  CHECK(Story(first, first + 3) == Story{"copy in 0 -> 0", "all-reduce 0", "all-reduce 1"});
}

TEST_CASE("an all-reduce names the task that put its last gradient in place",
          "[model][build_job]") {
  const auto completed_by = [](const Training& training) {
    const FlatStep schedule = flat_step(two_layer_works(), training);
    Story result;
    for (const FlatTask& task : schedule.tasks)
      if (task.operation == Operation::all_reduce)
        result.push_back(words(schedule.tasks.at(static_cast<std::size_t>(task.gradient))));
    return result;
  };
  CHECK(completed_by(training_of(Strategy::naive)) ==
        Story{"backward 0.0", "backward 1.0", "backward 1.0"});
  CHECK(completed_by(training_of(Strategy::flat)) == Story{"backward 0.0"});
  CHECK(completed_by(training_of(Strategy::overlap)) ==
        Story{"backward 1.0", "backward 1.0", "backward 0.0"});
  CHECK(completed_by(two_buckets()) == Story{"copy in 1 -> 0", "copy in 0 -> 1"});
  // Held back behind the first bucket, the second was complete before.
  Training training;
  training.buckets = {{0}, {2, 1}};
  CHECK(completed_by(training) == Story{"copy in 0 -> 0", "copy in 1 -> 1"});
}

TEST_CASE("R22, R23: views of the bucket save the copies out and not those in",
          "[model][build_job]") {
  Training training = two_buckets();
  FlatStep schedule = flat_step(two_layer_works(), training);
  CHECK(count(schedule, Operation::copy_in) == 3);
  CHECK(count(schedule, Operation::copy_out) == 3);
  training.gradient_as_bucket_view = true;
  schedule = flat_step(two_layer_works(), training);
  CHECK(count(schedule, Operation::copy_in) == 3);
  CHECK(count(schedule, Operation::copy_out) == 0);
  CHECK(count(schedule, Operation::wait) == 2);
  // Where zero_grad keeps gradients they stay views, and are not copied in either.
  training.pytorch = PyTorch::v1_13;
  schedule = flat_step(two_layer_works(), training);
  CHECK(count(schedule, Operation::copy_in) == 0);
  CHECK(count(schedule, Operation::copy_out) == 0);
}

TEST_CASE("all-reduces that make means leave nothing to divide", "[model][build_job]") {
  const Strategy strategy =
      GENERATE(Strategy::naive, Strategy::flat, Strategy::overlap, Strategy::bucketed);
  Training training = training_of(strategy);
  const FlatStep divided = flat_step(two_layer_works(), training);
  training.average = Average::all_reduce;
  training.gradient_as_bucket_view = strategy == Strategy::bucketed;
  const FlatStep schedule = flat_step(two_layer_works(), training);
  CHECK(count(schedule, Operation::divide) == 0);
  CHECK(count(schedule, Operation::all_reduce) == count(divided, Operation::all_reduce));
  for (const FlatTask& task : schedule.tasks)
    CHECK(task.divisor == (task.operation == Operation::all_reduce ? 2 : 1));
  CHECK_THROWS_WITH(check_on_ranks(training), Catch::Contains("training.average"));
  CHECK_NOTHROW(check_on_ranks(training_of(strategy)));
  training.comm_hook.kind = CommHookKind::fp16_compress;
  const auto refusal = bucket_refusal(WorkloadGradients(two_layers()), training);
  REQUIRE(refusal);
  CHECK(refusal->reason == "comm_hook divides itself: take it out, or average: all_reduce");
}

TEST_CASE("flat gradients that become views are not copied back", "[model][build_job]") {
  Training training = training_of(Strategy::flat);
  training.flat_views = true;
  const FlatStep schedule = flat_step(two_layer_works(), training);
  CHECK(story(schedule) ==
        forward + backward +
            Story{"concatenate 0", "all-reduce 0", "wait 0", "divide 0", "optimizer"});
  CHECK_THROWS_WITH(check_on_ranks(training), Catch::Contains("training.flat_views"));
}

TEST_CASE("a wrapper of one's own flattens what shares a bucket, and sends one gradient as it is",
          "[model][build_job]") {
  Training training = two_buckets();
  training.flattened_buckets = true;
  const FlatStep schedule = flat_step(two_layer_works(), training);
  CHECK(story(schedule) == forward + Story{"backward 1.0", "hook 2 -> 0", "hook 1 -> 0",
                                           "concatenate 0", "all-reduce 0", "backward 1.1",
                                           "backward 0.0", "hook 0 -> 1", "all-reduce 1", "wait 0",
                                           "divide 0", "copy out 2 -> 0", "copy out 1 -> 0",
                                           "wait 1", "divide 1", "optimizer"});
  CHECK(waits_for(schedule, "all-reduce 0") == Story{"concatenate 0"});
  CHECK(waits_for(schedule, "all-reduce 1") == Story{"backward 0.0"});
  CHECK(schedule.buckets[0].in_place == false);
  CHECK(schedule.buckets[1].in_place == true);
  CHECK_NOTHROW(check_on_ranks(training));
  // No bucket waits for an earlier one: what is full first goes first.
  training.buckets = {{0}, {2, 1}};
  const Story lines = story(flat_step(two_layer_works(), training));
  const auto sent = std::find(lines.begin(), lines.end(), "all-reduce 1");
  CHECK(std::find(lines.begin(), lines.end(), "all-reduce 0") > sent);
}

TEST_CASE("a wrapper of one's own copies gradients one by one into a buffer that it keeps",
          "[model][build_job]") {
  Training training = two_buckets();
  training.copied_buckets = true;
  const FlatStep schedule = flat_step(two_layer_works(), training);
  CHECK(story(schedule) == forward + Story{"backward 1.0", "hook 2 -> 0", "hook 1 -> 0",
                                           "copy in 2 -> 0", "copy in 1 -> 0", "all-reduce 0",
                                           "backward 1.1", "backward 0.0", "hook 0 -> 1",
                                           "copy in 0 -> 1", "all-reduce 1", "wait 0", "divide 0",
                                           "copy out 2 -> 0", "copy out 1 -> 0", "wait 1",
                                           "divide 1", "copy out 0 -> 1", "optimizer"});
  CHECK(waits_for(schedule, "all-reduce 0") == Story{"copy in 1 -> 0"});
  for (const FlatBucket& bucket : schedule.buckets) CHECK(bucket.in_place == false);
  // The division is the one behind the all-reduce: copies divide nothing.
  for (const FlatTask& task : schedule.tasks)
    if (task.operation == Operation::copy_in) CHECK(task.divisor == 1);
  CHECK_NOTHROW(check_on_ranks(training));
}

TEST_CASE("a wrapper of one's own may wait for all before it divides the first",
          "[model][build_job]") {
  Training training = two_buckets();
  training.copied_buckets = training.wait_for_all = true;
  const Story own = story(flat_step(two_layer_works(), training));
  CHECK(Story(own.end() - 8, own.end()) == Story{"wait 0", "wait 1", "divide 0", "copy out 2 -> 0",
                                                 "copy out 1 -> 0", "divide 1", "copy out 0 -> 1",
                                                 "optimizer"});
  training = training_of(Strategy::overlap);
  training.wait_for_all = true;
  const Story overlap = story(flat_step(two_layer_works(), training));
  CHECK(Story(overlap.end() - 7, overlap.end()) == Story{"wait 0", "wait 1", "wait 2",
                                                         "divide 2 -> 0", "divide 1 -> 1",
                                                         "divide 0 -> 2", "optimizer"});
}

TEST_CASE("what is DistributedDataParallel's does not go with buckets of a wrapper of one's own",
          "[model][build_job]") {
  const auto refused = [](auto&& change) {
    Training training = two_buckets();
    training.flattened_buckets = true;
    change(training);
    const auto refusal = bucket_refusal(WorkloadGradients(two_layers()), training);
    return refusal ? refusal->key + ": " + refusal->reason : "";
  };
  CHECK(refused([](Training&) {}).empty());
  CHECK(refused([](Training& training) { training.gradient_as_bucket_view = true; }) ==
        "training.flattened_buckets: gradient_as_bucket_view is DistributedDataParallel's: take it "
        "out, or flattened_buckets");
  CHECK(refused([](Training& training) { training.copied_buckets = true; }) ==
        "training.copied_buckets: buckets are flattened or copied: take this out, or "
        "flattened_buckets");
  CHECK(refused([](Training& training) {
          training.flattened_buckets = false;
          training.copied_buckets = training.static_graph = true;
        }) ==
        "training.copied_buckets: static_graph is DistributedDataParallel's: take it out, or "
        "copied_buckets");
  CHECK_FALSE(refused([](Training& t) { t.comm_hook.kind = CommHookKind::allreduce; }).empty());
  CHECK_FALSE(refused([](Training& t) { t.join = Join{}; }).empty());
  CHECK_FALSE(refused([](Training& t) { t.batched_grad_copy = true; }).empty());
  CHECK_FALSE(refused([](Training& t) { t.find_unused_parameters = true; }).empty());
  CHECK_FALSE(refused([](Training& t) { t.static_graph = true; }).empty());
}

TEST_CASE("a task has the costs of what it does", "[model][build_job]") {
  StepWorks works = two_layer_works();
  for (std::size_t i = 0; i < 3; ++i)
    for (auto* copies : {&works.copy_in, &works.copy_back}) {
      Work work = works.table[(*copies)[i].number];
      work.launches = 2;
      (*copies)[i] = {works.table.add(work)};
    }
  CostModel model(two_ranks());
  model.launch = {1us, 2us, 3us};
  model.collective.call_overhead = 5us;
  Priced step = priced(works, model, two_buckets());
  const auto cost_of_copy = [&](KnownWork known) -> WorkCost& {
    const auto found = std::find(step.schedule.works.begin(), step.schedule.works.end(),
                                 works.table[known.number]);
    REQUIRE(found != step.schedule.works.end());
    return step.costs.works[static_cast<std::size_t>(found - step.schedule.works.begin())];
  };
  for (std::size_t i = 0; i < 3; ++i) {
    WorkCost copy{.host = 7us, .first_launch = 3us, .last_launch = 9us, .memory_fraction = 0.75F};
    copy.work = static_cast<int>(i + 1) * 10us;
    cost_of_copy(works.copy_in[i]) = copy;
    copy.work *= 2;
    cost_of_copy(works.copy_back[i]) = copy;
  }
  for (const FlatTask& task : step.schedule.tasks) {
    CAPTURE(words(task));
    const WorkCost& cost = step.of(task);
    if (task.operation == Operation::copy_in || task.operation == Operation::copy_out) {
      CHECK(cost.host == 7us);
      const Duration each = task.operation == Operation::copy_in ? 10us : 20us;
      CHECK(cost.work == (task.parameter + 1) * each);
      CHECK(cost.last_launch == 9us);
      CHECK(step.schedule.work_of(task).launches == 2);
      CHECK(cost.memory_fraction == 0.75F);
    }
    if (task.operation == Operation::hook) CHECK(cost.host == 3us);
    if (task.operation == Operation::hook) CHECK(cost.work == 0us);
    if (task.operation == Operation::all_reduce) CHECK(cost.host == 2us);
    if (task.operation == Operation::wait) CHECK(cost.host + cost.work == 0us);
    // Two ranks, a hop of 1 ms and 1 GB/s: 2 ms and 1 ns a byte, and 5 us a call.
    if (task.operation == Operation::all_reduce)
      CHECK(cost.work == 2ms + 5us + step.schedule.work_of(task).payload.count * Duration{1ns});
  }
}

TEST_CASE("a synchronous device computes and waits on the host", "[model][build_job]") {
  const FlatStep device = flat_step(two_layer_works(), two_buckets());
  const FlatStep host = flat_step(two_layer_works(true), two_buckets());
  CHECK(story(host) == story(device));
  for (std::size_t i = 0; i < host.tasks.size(); ++i) {
    CAPTURE(words(host.tasks[i]));
    const bool reduces = host.tasks[i].operation == Operation::all_reduce;
    const bool hook = host.tasks[i].operation == Operation::hook;
    CHECK(host.tasks[i].stream == (reduces ? StepStream::communication : StepStream::host));
    CHECK(device.tasks[i].stream == (reduces ? StepStream::communication
                                     : hook  ? StepStream::host
                                             : StepStream::compute));
    CHECK(host.host_waits(host.tasks[i]) == (host.tasks[i].operation == Operation::wait));
    CHECK_FALSE(device.host_waits(device.tasks[i]));
  }
}

TEST_CASE("R48: one rank still copies and reduces", "[model][build_job]") {
  const Priced alone = priced(two_layers(), ring(1, 1ms, gigabytes_per_second(1)), two_buckets());
  CHECK(count(alone.schedule, Operation::copy_in) == 3);
  CHECK(count(alone.schedule, Operation::all_reduce) == 2);
  CHECK(times_of(alone, Operation::all_reduce) == std::vector<Duration>{0us, 0us});
}

TEST_CASE("what a hook launches is handed over in the midst of kernels", "[model][build_job]") {
  const auto handed_over = [](const Training& training) {
    std::vector<bool> each;
    const FlatStep schedule = flat_step(two_layer_works(), training);
    for (const FlatTask& task : schedule.tasks)
      if (is_collective(task.operation)) each.push_back(schedule.work_of(task).handed_over);
    return each;
  };
  using Each = std::vector<bool>;
  CHECK(handed_over(training_of(Strategy::naive)) == Each{false, false, false});
  CHECK(handed_over(training_of(Strategy::flat)) == Each{false});
  CHECK(handed_over(training_of(Strategy::overlap)) == Each{true, true, true});
  CHECK(handed_over(two_buckets()) == Each{true, true});
  // What DDP announces is not, nor what a comm hook sends behind its first collective.
  Training rebuilding = small_caps();
  rebuilding.iteration = 2;
  CHECK(handed_over(rebuilding) == Each{false, false, true, true, true});
  Training gathering = two_buckets();
  gathering.comm_hook.kind = CommHookKind::quantization_pertensor;
  CHECK(handed_over(gathering) == Each{true, false, true, false});
}

TEST_CASE("a bucket is its parameter's gradient where each is reduced by itself",
          "[model][build_job]") {
  const auto in_place = [](const Training& training) {
    std::vector<bool> each;
    for (const FlatBucket& bucket : flat_step(two_layer_works(), training).buckets)
      each.push_back(bucket.in_place);
    return each;
  };
  using Each = std::vector<bool>;
  CHECK(in_place(training_of(Strategy::naive)) == Each{true, true, true});
  CHECK(in_place(training_of(Strategy::overlap)) == Each{true, true, true});
  CHECK(in_place(training_of(Strategy::flat)) == Each{false});
  CHECK(in_place(small_caps()) == Each{false, false, false});
}

TEST_CASE("tasks that do the same work point to the same", "[model][build_job]") {
  // Both forward kernels take 1 ms, two of backward 2; hooks and waits are all alike.
  const FlatStep schedule = flat_step(two_layer_works(), small_caps());
  const auto different = [&](Operation operation) {
    std::set<std::uint32_t> works;
    for (const FlatTask& task : schedule.tasks)
      if (task.operation == operation) works.insert(task.work);
    return works.size();
  };
  CHECK(different(Operation::forward) == 1);
  CHECK(different(Operation::backward) == 2);
  CHECK(different(Operation::hook) == 1);
  CHECK(different(Operation::wait) == 1);
  CHECK(different(Operation::copy_in) == 3);
  CHECK(different(Operation::all_reduce) == 3);
}
