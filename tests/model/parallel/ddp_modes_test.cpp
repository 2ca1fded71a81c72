// DDP's modes: what they add to a step, in what order, and in which iteration.
#include <algorithm>

#include <catch2/catch.hpp>

#include "model/parallel/policy/iteration.hpp"
#include "tests/model/cost/priced.hpp"
#include "tests/model/flat_step.hpp"
#include "tests/model/parallel/schedule_story.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

/// Parameters a, b and c as in two_layers; `unused` is one of them, or nobody.
StepWorks works_with(int unused = nobody, bool buffers = false, bool synchronous = false) {
  Workload workload = two_layers();
  if (unused != nobody) workload.parameters[static_cast<std::size_t>(unused)].unused = true;
  if (buffers) workload.buffers = {{2, Bytes{64}}};
  return works_of(workload, two_ranks(synchronous));
}

Training looking_for_unused() {
  Training training = small_caps();
  training.find_unused_parameters = true;
  return training;
}

Training in_iteration(Training training, int iteration) {
  training.iteration = iteration;
  return training;
}

/// What is sent, in order: "all_reduce 2 of 400", "used map of 12".
Story sent(const FlatStep& schedule) {
  Story lines;
  for (const FlatTask& task : schedule.tasks) {
    if (!is_collective(task.operation)) continue;
    const Work& work = schedule.work_of(task);
    std::string line(name_of(work.message));
    if (task.bucket != nobody) line += " " + std::to_string(task.bucket);
    lines.push_back(line + " of " + std::to_string(work.payload.count));
  }
  return lines;
}

std::vector<std::int32_t> copied(const FlatStep& schedule, Operation operation) {
  std::vector<std::int32_t> parameters;
  for (const FlatTask& task : schedule.tasks)
    if (task.operation == operation && task.parameter != nobody)
      parameters.push_back(task.parameter);
  return parameters;
}

/// Waits at which the host stands still, by what they wait for.
Story host_waits(const FlatStep& schedule) {
  Story lines;
  for (const FlatTask& task : schedule.tasks)
    if (task.operation == Operation::wait && task.stream == StepStream::host)
      lines.emplace_back(name_of(schedule.work_of(task).message));
  return lines;
}

std::size_t place_of(const FlatStep& schedule, Message message) {
  std::size_t place = 0;
  const auto sends = [&](const FlatTask& task) {
    return is_collective(task.operation) && schedule.work_of(task).message == message;
  };
  while (place < schedule.tasks.size() && !sends(schedule.tasks[place])) ++place;
  return place;
}

std::size_t last_of(const FlatStep& schedule, Operation operation) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i)
    if (schedule.tasks[i].operation == operation) place = i;
  return place;
}

}  // namespace

TEST_CASE("R8: the second iteration has the rebuilt buckets, a static graph's third",
          "[model][rules]") {
  const auto buckets = [](bool static_graph, int iteration) {
    Training training = in_iteration(small_caps(), iteration);
    training.static_graph = static_graph;
    return flat_step(works_with(), training).buckets.size();
  };
  CHECK(buckets(false, 1) == 1);
  CHECK(buckets(false, 2) == 3);
  CHECK(buckets(true, 1) == 1);
  CHECK(buckets(true, 2) == 1);
  CHECK(buckets(true, 3) == 3);
}

TEST_CASE("R9: looking for unused parameters keeps the buckets over ten iterations",
          "[model][rules]") {
  for (int iteration = 0; iteration <= 10; ++iteration) {
    const FlatStep schedule =
        flat_step(works_with(), in_iteration(looking_for_unused(), iteration));
    REQUIRE(schedule.buckets.size() == 3);
    CHECK(schedule.buckets[0].parameters == std::vector<std::int32_t>{2});
    CHECK(count(schedule, Operation::broadcast) == 0);
  }
}

TEST_CASE("R10: a rebuild broadcasts indices and lengths, and the host reads both",
          "[model][rules]") {
  const FlatStep schedule = flat_step(works_with(), in_iteration(small_caps(), 2));
  // int32 for each of three parameters and one more; int32 for each of three buckets.
  const Story all = sent(schedule);
  REQUIRE(all.size() == 5);
  CHECK(Story(all.begin(), all.begin() + 2) ==
        Story{"bucket indices of 16", "bucket lengths of 12"});
  CHECK(host_waits(schedule) == Story{"bucket indices", "bucket lengths"});
  CHECK(place_of(schedule, Message::bucket_lengths) < place_of(schedule, Message::gradients));
  CHECK(story(schedule)[4] == "forward 0.0");
  for (const int iteration : {0, 1, 3, 4})
    CHECK(count(flat_step(works_with(), in_iteration(small_caps(), iteration)),
                Operation::broadcast) == 0);
  Training explicitly = in_iteration(small_caps(), 2);
  explicitly.buckets = {{2, 1}, {0}};  // no DDP would assign them, so none rebuilds them
  CHECK(count(flat_step(works_with(), explicitly), Operation::broadcast) == 0);
}

TEST_CASE("R12: releases differ in the first bucket when the user gives a cap", "[model][rules]") {
  Training training;
  for (const PyTorch older : {PyTorch::v1_13, PyTorch::v2_0}) {
    training.pytorch = older;
    training.give_cap(2 * MiB);
    CHECK(training.limits() == std::vector<Bytes>{1 * MiB, 2 * MiB});
  }
  CHECK(Training().pytorch == PyTorch::v2_13);
  training.pytorch = PyTorch::v2_13;
  CHECK(training.limits() == std::vector<Bytes>{1 * MiB, 2 * MiB});
  training.give_cap(2 * MiB);
  CHECK(training.limits() == std::vector<Bytes>{2 * MiB});
  training.first_bucket_cap = 1 * MiB;
  training.first_cap_given = true;
  training.give_cap(4 * MiB);
  CHECK(training.limits() == std::vector<Bytes>{1 * MiB, 4 * MiB});
}

TEST_CASE("R13: the small bucket may be launched last", "[model][rules]") {
  Training training;
  training.first_bucket_cap = Bytes{1};
  training.bucket_cap = Bytes{400};
  // Arrival c (40), b (400), a (4000): the first limit is c's, or, walked backwards, a's.
  CHECK(flat_step(works_with(), training).buckets.front().parameters ==
        std::vector<std::int32_t>{2});
  training.last_bucket_cap = true;
  const FlatStep schedule = flat_step(works_with(), training);
  CHECK(schedule.buckets.front().parameters == std::vector<std::int32_t>{2});
  CHECK(schedule.buckets.back().parameters == std::vector<std::int32_t>{0});
  training.bucket_cap = Bytes{4000};
  const FlatStep reversed = flat_step(works_with(), training);
  REQUIRE(reversed.buckets.size() == 2);
  CHECK(reversed.buckets.front().parameters == std::vector<std::int32_t>{1, 2});
  CHECK(reversed.buckets.back().parameters == std::vector<std::int32_t>{0});
}

TEST_CASE("R23: a view that zero_grad keeps is divided in place, or left to the hook",
          "[model][rules]") {
  Training training = small_caps();
  training.gradient_as_bucket_view = true;
  CHECK(count(flat_step(works_with(), training), Operation::copy_in) == 3);
  training.pytorch = PyTorch::v2_13;
  CHECK(count(flat_step(works_with(), training), Operation::copy_in) == 3);
  training.pytorch = PyTorch::v1_13;
  FlatStep schedule = flat_step(works_with(), training);
  CHECK(count(schedule, Operation::copy_in) == 0);
  CHECK(copied(schedule, Operation::divide) == std::vector<std::int32_t>{2, 1, 0});
  // Before the first iteration there is no gradient to be a view.
  schedule = flat_step(works_with(), in_iteration(training, 1));
  CHECK(count(schedule, Operation::copy_in) == 3);
  CHECK(count(schedule, Operation::divide) == 0);
  training.comm_hook.kind = CommHookKind::noop;
  schedule = flat_step(works_with(), training);
  CHECK(count(schedule, Operation::copy_in) + count(schedule, Operation::divide) == 0);
}

TEST_CASE("R30: one more all-reduce behind the last bucket, of an int32 for each parameter",
          "[model][rules]") {
  const FlatStep schedule = flat_step(works_with(), looking_for_unused());
  CHECK(sent(schedule) ==
        Story{"gradients 0 of 40", "gradients 1 of 400", "gradients 2 of 4000", "used map of 12"});
  CHECK(count(schedule, Operation::search_unused) == 1);
  // All are used: the wait is the device's, behind all buckets.
  CHECK(host_waits(schedule).empty());
  CHECK(last_of(schedule, Operation::wait) > last_of(schedule, Operation::copy_out));
}

TEST_CASE("R31: an unused parameter is ready at the first hook, as zeros, and reduced",
          "[model][rules]") {
  const FlatStep schedule = flat_step(works_with(0), looking_for_unused());
  // a is zero-filled before c, whose hook is the first, is copied.
  CHECK(copied(schedule, Operation::copy_in) == std::vector<std::int32_t>{0, 2, 1});
  CHECK(copied(schedule, Operation::hook) == std::vector<std::int32_t>{2, 1});
  CHECK(copied(schedule, Operation::copy_out) == std::vector<std::int32_t>{2, 1});
  CHECK(sent(schedule).size() == 4);
  // Zeros are only written: half of what a copy moves.
  const auto copying = [](const StepWorks& works) {
    return cost_of(works, CostModel(two_ranks()), works.copy_in[0]).work;
  };
  CHECK(copying(works_with(0)) < copying(works_with()));
  // Other strategies leave it out.
  CHECK(sent(flat_step(works_with(0), training_of(Strategy::naive))).size() == 2);
  CHECK(sent(flat_step(works_with(0), training_of(Strategy::overlap))).size() == 2);
  CHECK(sent(flat_step(works_with(0), training_of(Strategy::flat))) == Story{"gradients 0 of 440"});
}

TEST_CASE("R32: with an unused parameter the host waits for the used map", "[model][rules]") {
  const FlatStep schedule = flat_step(works_with(0), looking_for_unused());
  CHECK(host_waits(schedule) == Story{"used map"});
  CHECK(host_waits(flat_step(works_with(nobody), looking_for_unused())).empty());
}

TEST_CASE("R33: a bucket of unused parameters alone may be skipped", "[model][rules]") {
  Training training = looking_for_unused();
  training.skip_all_reduce_unused_params = true;
  const FlatStep schedule = flat_step(works_with(1), training);
  CHECK(sent(schedule) == Story{"gradients 0 of 40", "gradients 2 of 4000", "used map of 12"});
  CHECK(count(schedule, Operation::wait) == 3);
  training.bucket_cap = 1 * MiB;  // together with others it travels
  CHECK(sent(flat_step(works_with(1), training)) == Story{"gradients 0 of 4440", "used map of 12"});
}

TEST_CASE("R34: a static graph's first iteration communicates after backward, the map first",
          "[model][rules]") {
  Training training = small_caps();
  training.static_graph = true;
  const FlatStep schedule = flat_step(works_with(0), in_iteration(training, 1));
  CHECK(sent(schedule) == Story{"used map of 12", "gradients 0 of 4440"});
  CHECK(place_of(schedule, Message::used_map) > last_of(schedule, Operation::backward));
  // Copies in the order of registration, before the bucket.
  CHECK(copied(schedule, Operation::copy_in) == std::vector<std::int32_t>{0, 1, 2});
  CHECK(last_of(schedule, Operation::copy_in) < place_of(schedule, Message::gradients));
  CHECK(host_waits(schedule) == Story{"used map"});
  // Later ones need no map: what is unused is known.
  CHECK(sent(flat_step(works_with(0), in_iteration(training, 2))) == Story{"gradients 0 of 4440"});
}

TEST_CASE("R25: a bucket's gradients are copied together and divided once, before it is launched",
          "[model][rules]") {
  Training training = small_caps();
  training.bucket_cap = Bytes{1 << 20};  // one bucket of three gradients
  const auto kernels = [&](Operation operation) {
    const FlatStep schedule = flat_step(works_with(), training);
    return std::count_if(schedule.tasks.begin(), schedule.tasks.end(),
                         [&](const FlatTask& task) { return task.operation == operation; });
  };
  CHECK(kernels(Operation::copy_in) == 3);
  training.batched_grad_copy = true;
  CHECK(kernels(Operation::copy_in) == 0);
  CHECK(kernels(Operation::concatenate) == 1);
  CHECK(kernels(Operation::divide) == 1);
  CHECK(kernels(Operation::copy_out) == 3);  // as before
  const FlatStep schedule = flat_step(works_with(), training);
  Story order;
  for (const FlatTask& task : schedule.tasks)
    if (task.bucket == 0 && (task.operation == Operation::concatenate ||
                             task.operation == Operation::divide || is_collective(task.operation)))
      order.emplace_back(name_of(task.operation));
  CHECK(order == Story{"concatenate", "divide", "all-reduce"});
  // Gradients that have stayed views of the bucket need no copy.
  training.gradient_as_bucket_view = true;
  training.pytorch = PyTorch::v1_13;
  CHECK(kernels(Operation::concatenate) == 0);
  CHECK(kernels(Operation::divide) == 1);
}

TEST_CASE("R35: a parameter that gets no gradient is refused where DDP would fail",
          "[model][rules]") {
  CHECK_THROWS_WITH(flat_step(works_with(0), small_caps()),
                    Catch::StartsWith("training: no gradient reaches a, so ") &&
                        Catch::Contains("find_unused_parameters"));
  CHECK_NOTHROW(flat_step(works_with(0), looking_for_unused()));
}

TEST_CASE("R36: uneven inputs add their collectives in the order DDP has them", "[model][rules]") {
  Training training = in_iteration(small_caps(), 2);
  training.join = Join{};
  const Story plain = sent(flat_step(works_with(nobody, true), training));
  CHECK(Story(plain.begin(), plain.begin() + 6) ==
        Story{"active ranks of 4", "bucket indices of 16", "bucket lengths of 12",
              "buffer source of 8", "buffers of 64", "will sync of 4"});
  training.iteration = 0;
  training.join = Join{true, false};
  training.broadcast_buffers = false;
  const FlatStep thrown = flat_step(works_with(nobody, true), training);
  const Story lines = sent(thrown);
  CHECK(Story(lines.begin(), lines.begin() + 3) ==
        Story{"active ranks of 4", "early end of 4", "will sync of 4"});
  // The host reads the flag, and at the first gradient by how many to divide.
  CHECK(host_waits(thrown) == Story{"early end", "active ranks"});
}

TEST_CASE("R36: with uneven inputs buffers come from the last rank that has some",
          "[model][rules]") {
  const auto root = [](const Training& training) {
    const FlatStep schedule = flat_step(works_with(nobody, true), training);  // of two ranks
    for (const FlatTask& task : schedule.tasks)
      if (task.operation == Operation::broadcast) return task.root;
    return std::int32_t{-2};
  };
  Training training = small_caps();
  CHECK(root(training) == 0);
  training.join = Join{};
  CHECK(root(training) == 1);
  training.join->joined_ranks = 1;
  CHECK(root(training) == 0);
}

TEST_CASE("a sparse gradient is gathered in three parts, without copies", "[model][rules]") {
  Workload workload = two_layers();
  workload.parameters[0].shape = {100, 10};
  workload.parameters[0].sparse = true;
  workload.parameters[0].sparse_rows = 8;
  const StepWorks sparse = works_of(workload, two_ranks());
  const FlatStep schedule = flat_step(sparse, small_caps());
  // Eight rows of ten fp32, and eight int64 to say which.
  CHECK(sent(schedule) == Story{"gradients 0 of 40", "gradients 1 of 400", "sparse shape 2 of 72",
                                "sparse indices 2 of 64", "sparse values 2 of 320"});
  CHECK(copied(schedule, Operation::copy_in) == std::vector<std::int32_t>{2, 1});
  CHECK(copied(schedule, Operation::copy_out) == std::vector<std::int32_t>{2, 1});
  CHECK(copied(schedule, Operation::divide) == std::vector<std::int32_t>{0});
  Training hooked = small_caps();
  hooked.comm_hook.kind = CommHookKind::fp16_compress;
  CHECK_THROWS_WITH(flat_step(sparse, hooked), Catch::Contains("dense"));
}

TEST_CASE("iterations that are alike are known to be", "[model][iteration]") {
  Training training;
  const auto like = [&](int iteration) { return first_like(training, iteration); };
  CHECK(like(1) == 1);
  CHECK(like(2) == 2);
  CHECK(like(3) == 3);
  CHECK(like(1'000'000) == 3);
  training.static_graph = true;
  CHECK(like(3) == 3);
  CHECK(like(5) == 4);
  training.buckets = {{0}};  // that are not built anew: its first iteration alone is another
  CHECK(like(1) == 1);
  CHECK(like(5) == 2);
  training.buckets.clear();
  training.static_graph = false;
  training.comm_hook.kind = CommHookKind::powersgd;
  training.comm_hook.powersgd.start_iteration = 10;
  CHECK(like(10) == 3);
  CHECK(like(11) == 11);
  CHECK(like(500) == 12);
  training.comm_hook.kind = CommHookKind::post_local_sgd;
  training.comm_hook.post_local_sgd.start_iteration = 4;
  training.comm_hook.post_local_sgd.period = 3;
  CHECK(like(4) == 3);
  CHECK(like(5) == 5);  // averages: 5, 8, 11, ...
  CHECK(like(6) == 6);
  CHECK(like(7) == 6);
  CHECK(like(8) == 5);
  CHECK(like(999'998) == 5);
  training.strategy = Strategy::naive;
  CHECK(like(1) == 0);
}

TEST_CASE("iterations said to be alike have the same schedule", "[model][iteration]") {
  for (const CommHookKind kind :
       {CommHookKind::none, CommHookKind::powersgd, CommHookKind::post_local_sgd}) {
    for (const bool static_graph : {false, true}) {
      for (const bool views : {false, true}) {
        Training training = small_caps();
        training.static_graph = static_graph;
        training.gradient_as_bucket_view = views;
        training.pytorch = PyTorch::v1_13;
        training.comm_hook.kind = kind;
        training.comm_hook.powersgd.start_iteration = 5;
        training.comm_hook.post_local_sgd.start_iteration = 3;
        for (int iteration = 1; iteration < 20; ++iteration) {
          CAPTURE(name_of(kind), static_graph, views, iteration);
          const int like = first_like(training, iteration);
          REQUIRE(like <= iteration);
          CHECK(story(flat_step(works_with(), in_iteration(training, iteration))) ==
                story(flat_step(works_with(), in_iteration(training, like))));
        }
      }
    }
  }
}

TEST_CASE("post-local SGD averages the models behind the optimizer, every period",
          "[model][iteration]") {
  Training training = small_caps();
  training.comm_hook.kind = CommHookKind::post_local_sgd;
  training.comm_hook.post_local_sgd.start_iteration = 2;
  training.comm_hook.post_local_sgd.period = 2;
  for (const int iteration : {1, 2, 3, 4, 5}) {
    const FlatStep schedule = flat_step(works_with(), in_iteration(training, iteration));
    const std::size_t place = place_of(schedule, Message::parameters);
    const bool averages = iteration == 3 || iteration == 5;
    CAPTURE(iteration);
    CHECK((place < schedule.tasks.size()) == averages);
    if (!averages) continue;
    CHECK(schedule.work_of(schedule.tasks[place]).payload == Bytes{4440});
    CHECK(place > last_of(schedule, Operation::optimizer));
  }
}

TEST_CASE(
    "what is special about an iteration is told, and each kind comes first where it is told first",
    "[model][iteration]") {
  using Labels = std::vector<std::string>;
  const auto check_labels = [](Training training, const Labels& begin) {
    Labels labels;
    for (training.iteration = 1; training.iteration <= 16; ++training.iteration)
      labels.push_back(phase_label(training));
    CHECK(Labels(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(begin.size())) ==
          begin);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto first = std::find(labels.begin(), labels.end(), labels[i]);
      CAPTURE(i, labels[i]);
      CHECK(first_like(training, static_cast<int>(i) + 1) == first - labels.begin() + 1);
    }
    training.iteration = 0;
    CHECK(phase_label(training) == "steady");
  };
  const Training dynamic;
  check_labels(dynamic, {"initial buckets", "buckets rebuilt", "steady"});
  Training fixed = dynamic;
  fixed.static_graph = true;
  check_labels(fixed, {"everything after backward, initial buckets", "initial buckets",
                       "buckets rebuilt", "steady"});
  Training unused = dynamic;
  unused.find_unused_parameters = true;  // never rebuilt
  check_labels(unused, {"steady", "steady", "steady"});
  Training explicit_buckets = dynamic;
  explicit_buckets.parameter_groups = 2;
  check_labels(explicit_buckets, {"steady", "steady", "steady"});

  Training powersgd = dynamic;
  powersgd.comm_hook.kind = CommHookKind::powersgd;
  powersgd.comm_hook.powersgd.start_iteration = 4;
  check_labels(powersgd,
               {"initial buckets, not compressed yet", "buckets rebuilt, not compressed yet",
                "not compressed yet", "not compressed yet", "first compressed", "steady"});
  powersgd.comm_hook.kind = CommHookKind::batched_powersgd;
  powersgd.comm_hook.powersgd.start_iteration = 1;
  check_labels(powersgd, {"initial buckets, not compressed yet",
                          "buckets rebuilt, first compressed", "steady"});

  // Models are averaged every second iteration, counted from the first local one.
  Training local = dynamic;
  local.comm_hook.kind = CommHookKind::post_local_sgd;
  local.comm_hook.post_local_sgd.start_iteration = 3;
  local.comm_hook.post_local_sgd.period = 2;
  check_labels(local, {"initial buckets, all ranks reduce", "buckets rebuilt, all ranks reduce",
                       "all ranks reduce", "models averaged", "steady", "models averaged"});
  local.comm_hook.post_local_sgd.period = 5;
  check_labels(local, {"initial buckets, all ranks reduce", "buckets rebuilt, all ranks reduce",
                       "all ranks reduce", "models averaged", "steady", "steady", "steady",
                       "steady", "models averaged"});

  Training zero = dynamic;
  zero.comm_hook.kind = CommHookKind::zero_step;
  check_labels(zero, {"initial buckets, parameters not updated yet",
                      "buckets rebuilt, parameters not updated yet", "steady"});
  Training naive = dynamic;
  naive.strategy = Strategy::naive;
  naive.iteration = 1;
  CHECK(phase_label(naive) == "steady");
  CHECK(first_like(naive, 7) == 0);
}
