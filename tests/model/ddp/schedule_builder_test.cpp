#include "model/ddp/schedule_builder.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/model/ddp/schedule_story.hpp"

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

/// Bucketed: parameters 2 and 1 in bucket 0, parameter 0 in bucket 1.
Training two_buckets() {
  Training training;
  training.buckets = {{2, 1}, {0}};
  return training;
}

}  // namespace

TEST_CASE("without communication a step is forward, backward and optimizer",
          "[model][schedule_builder]") {
  const Schedule schedule = build_schedule(two_layer_costs(), training_of(Strategy::none));
  CHECK(story(schedule) == forward + backward + Story{"optimizer"});
  CHECK(schedule.buckets.empty());
}

TEST_CASE("naive reduces and divides one parameter after the other", "[model][schedule_builder]") {
  const Schedule schedule = build_schedule(two_layer_costs(), training_of(Strategy::naive));
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

TEST_CASE("flat reduces one buffer of all gradients", "[model][schedule_builder]") {
  const Schedule schedule = build_schedule(two_layer_costs(), training_of(Strategy::flat));
  CHECK(story(schedule) == forward + backward +
                               Story{"concatenate 0", "all-reduce 0", "wait 0", "divide 0",
                                     "copy out 2 -> 0", "copy out 1 -> 0", "copy out 0 -> 0",
                                     "optimizer"});
  CHECK(waits_for(schedule, "all-reduce 0") == Story{"concatenate 0"});
  CHECK(schedule.buckets.at(0).size == Bytes{4440});
}

TEST_CASE("overlap launches every gradient from its hook and divides after backward",
          "[model][schedule_builder]") {
  const Schedule schedule = build_schedule(two_layer_costs(), training_of(Strategy::overlap));
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
          "[model][schedule_builder]") {
  const Schedule schedule = build_schedule(two_layer_costs(), two_buckets());
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

TEST_CASE("R16: a bucket ready early waits for its turn", "[model][schedule_builder]") {
  // Parameter 0, the last to arrive, is in the first bucket: both are launched behind it, at once.
  Training training;
  training.buckets = {{0}, {2, 1}};
  const Story lines = story(build_schedule(two_layer_costs(), training));
  const auto first = std::find(lines.begin(), lines.end(), "copy in 0 -> 0");
  REQUIRE(lines.end() - first > 2);
  CHECK(Story(first, first + 3) == Story{"copy in 0 -> 0", "all-reduce 0", "all-reduce 1"});
}

TEST_CASE("an all-reduce names the task that put its last gradient in place",
          "[model][schedule_builder]") {
  const auto completed_by = [](const Training& training) {
    const Schedule schedule = build_schedule(two_layer_costs(), training);
    Story result;
    for (const Task& task : schedule.tasks)
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
          "[model][schedule_builder]") {
  Training training = two_buckets();
  Schedule schedule = build_schedule(two_layer_costs(), training);
  CHECK(count(schedule, Operation::copy_in) == 3);
  CHECK(count(schedule, Operation::copy_out) == 3);
  training.gradient_as_bucket_view = true;
  schedule = build_schedule(two_layer_costs(), training);
  CHECK(count(schedule, Operation::copy_in) == 3);
  CHECK(count(schedule, Operation::copy_out) == 0);
  CHECK(count(schedule, Operation::wait) == 2);
}

TEST_CASE("a task has the costs of what it does", "[model][schedule_builder]") {
  StepCosts priced = two_layer_costs();
  for (std::size_t i = 0; i < 3; ++i) {
    priced.copy_in[i] = {7us, static_cast<int>(i + 1) * Duration{10us}, 9us, 2, 0.75F};
    priced.copy_out[i] = {7us, static_cast<int>(i + 1) * Duration{20us}, 9us, 2, 0.75F};
  }
  priced.launch = {1us, 2us, 3us};
  priced.collective.call_overhead = 5us;
  for (const Task& task : build_schedule(priced, two_buckets()).tasks) {
    CAPTURE(words(task));
    if (task.operation == Operation::copy_in || task.operation == Operation::copy_out) {
      CHECK(task.host == 7us);
      const Duration each = task.operation == Operation::copy_in ? 10us : 20us;
      CHECK(task.work == (task.parameter + 1) * each);
      CHECK(task.last_launch == 9us);
      CHECK(task.launches == 2);
      CHECK(task.memory_fraction == 0.75F);
    }
    if (task.operation == Operation::hook) CHECK(task.host == 3us);
    if (task.operation == Operation::hook) CHECK(task.work == 0us);
    if (task.operation == Operation::all_reduce) CHECK(task.host == 2us);
    if (task.operation == Operation::wait) CHECK(task.host + task.work == 0us);
    // Two ranks, a hop of 1 ms and 1 GB/s: 2 ms and 1 ns a byte, and 5 us a call.
    if (task.operation == Operation::all_reduce)
      CHECK(task.work == 2ms + 5us + task.bytes.count * Duration{1ns});
  }
}

TEST_CASE("a synchronous device computes and waits on the host", "[model][schedule_builder]") {
  const Schedule device = build_schedule(two_layer_costs(), two_buckets());
  const Schedule host = build_schedule(two_layer_costs(true), two_buckets());
  CHECK(story(host) == story(device));
  for (std::size_t i = 0; i < host.tasks.size(); ++i) {
    CAPTURE(words(host.tasks[i]));
    const bool reduces = host.tasks[i].operation == Operation::all_reduce;
    const bool hook = host.tasks[i].operation == Operation::hook;
    CHECK(host.tasks[i].stream == (reduces ? Stream::communication : Stream::host));
    CHECK(device.tasks[i].stream == (reduces ? Stream::communication
                                     : hook  ? Stream::host
                                             : Stream::compute));
    CHECK(host.tasks[i].host_waits == (host.tasks[i].operation == Operation::wait));
    CHECK_FALSE(device.tasks[i].host_waits);
  }
}

TEST_CASE("R48: one rank still copies and reduces", "[model][schedule_builder]") {
  const StepCosts alone = costs_of(two_layers(), ring(1, 1ms, gigabytes_per_second(1)));
  const Schedule schedule = build_schedule(alone, two_buckets());
  CHECK(count(schedule, Operation::copy_in) == 3);
  CHECK(count(schedule, Operation::all_reduce) == 2);
  for (const Task& task : schedule.tasks)
    if (task.operation == Operation::all_reduce) CHECK(task.work == 0us);
}
