#include "model/schedule/joined_steps.hpp"

#include <catch2/catch.hpp>

#include "model/ddp/build_schedule.hpp"
#include "model/timeline/ddp_statistics.hpp"
#include "tests/model/schedule/handmade.hpp"
#include "tests/model/workload/timed.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// Three layers of 1 MB between two ranks, a bucket for each.
StepWorks three_layers(bool synchronous = false) {
  Workload workload = timed::chain(3, 2ms, 4ms, Bytes{1'000'000});
  workload.optimizer = 1ms;
  Cluster cluster = timed::ring(2, Duration::zero(), gigabytes_per_second(1));
  cluster.device.synchronous = synchronous;
  return timed::works_of(workload, cluster);
}

Training one_byte_cap() {
  Training training;
  training.bucket_cap = Bytes{1};
  training.first_bucket_cap.reset();
  return training;
}

JoinedSteps joined(const Schedule& step, std::size_t count) {
  return join_steps(std::vector<const Schedule*>(count, &step), DdpAverages::samples);
}

/// A step of a forward kernel and an all-reduce in a bucket, which DDP's logger counts.
Schedule handmade_step(std::int64_t traffic, std::int64_t payload) {
  Schedule step;
  step.buckets.resize(1);
  handmade::add(step, handmade::moved(Operation::forward, traffic), Stream::compute);
  Task& reduce = handmade::add(step, handmade::sent(Operation::all_reduce, payload),
                               Stream::communication, {0});
  reduce.bucket = 0;
  reduce.gradient = 0;
  handmade::add(step, handmade::sent(Operation::wait, 0), Stream::compute, {1}).bucket = 0;
  step.passes.forward = {0};
  step.logged = {{0, 3}};
  return step;
}

/// [step] in whose forward timers are read, counted from 1
std::vector<std::size_t> reading(const JoinedSteps& steps) {
  std::vector<std::size_t> result;
  for (const JoinedSteps::TimerRead& read : steps.timer_reads) result.push_back(read.step + 1);
  return result;
}

}  // namespace

TEST_CASE("R47: timers are read at the forward after iterations 1 to 10, then 100, 200 and so on",
          "[model][joined_steps]") {
  const Schedule step = build_schedule(three_layers(), one_byte_cap());
  const std::vector<std::size_t> after_ten{2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  CHECK(reading(joined(step, 1)).empty());
  CHECK(reading(joined(step, 3)) == std::vector<std::size_t>{2, 3});
  CHECK(reading(joined(step, 11)) == after_ten);
  CHECK(reading(joined(step, 100)) == after_ten);
  std::vector<std::size_t> two_hundred = after_ten;
  two_hundred.insert(two_hundred.end(), {101, 201});
  CHECK(reading(joined(step, 299)) == two_hundred);
}

TEST_CASE("joined steps run as many collectives at once as each does", "[model][joined_steps]") {
  StepWorks works = three_layers();
  works.device.collectives_at_once = 2;
  CHECK(joined(build_schedule(works, one_byte_cap()), 3).schedule.collectives_at_once == 2);
}

TEST_CASE("R47: the host waits for the last copy back, before all else of the next step",
          "[model][joined_steps]") {
  const Schedule step = build_schedule(three_layers(), one_byte_cap());
  const JoinedSteps steps = joined(step, 2);
  REQUIRE(steps.timer_reads.size() == 1);
  const std::uint32_t read = steps.timer_reads[0].task;
  CHECK(read == steps.begins[1]);
  const Task& wait = steps.schedule.tasks[read];
  CHECK(wait.host_waits);
  CHECK(wait.stream == Stream::host);
  REQUIRE(wait.after_count == 1);
  const std::uint32_t mark = steps.schedule.waits_for(wait)[0];
  CHECK(steps.schedule.tasks[mark].operation == Operation::copy_out);
  // The optimizer comes behind the mark: the device still has it to do when the host goes on.
  CHECK(steps.schedule.tasks[mark + 1].operation == Operation::optimizer);
}

TEST_CASE("R47: other strategies have no logger, nor has the host's own clock to be waited for",
          "[model][joined_steps]") {
  for (const Strategy strategy :
       {Strategy::none, Strategy::naive, Strategy::flat, Strategy::overlap}) {
    CAPTURE(name_of(strategy));
    const Schedule step = build_schedule(three_layers(), timed::training_of(strategy));
    CHECK(joined(step, 12).timer_reads.empty());
  }
  CHECK(joined(build_schedule(three_layers(true), one_byte_cap()), 12).timer_reads.empty());
}

TEST_CASE("R47: within no_sync there is no iteration, and without it each micro-batch is one",
          "[model][joined_steps]") {
  Training training = one_byte_cap();
  training.micro_batches = 4;
  training.no_sync = true;
  const auto read_before = [](const JoinedSteps& steps, std::size_t which) {
    return steps.schedule.tasks[steps.timer_reads.at(which).task + 1];
  };
  const JoinedSteps silent = joined(build_schedule(three_layers(), training), 13);
  CHECK(silent.timer_reads.size() == 10);
  for (std::size_t i = 0; i < silent.timer_reads.size(); ++i) {
    CHECK(silent.timer_reads[i].step == i + 1);
    CHECK(read_before(silent, i).micro_batch == 3);  // the first forward that will communicate
    CHECK(read_before(silent, i).operation == Operation::forward);
  }
  training.no_sync = false;
  const JoinedSteps all = joined(build_schedule(three_layers(), training), 13);
  // Iterations 1 to 10 are the first ten micro-batches: the reads before the second to the
  // eleventh.
  REQUIRE(all.timer_reads.size() == 10);
  for (std::size_t i = 0; i < all.timer_reads.size(); ++i) {
    CHECK(all.timer_reads[i].step == (i + 1) / 4);
    CHECK(read_before(all, i).micro_batch == static_cast<int>((i + 1) % 4));
  }
}

TEST_CASE("joined steps keep their tasks, order and waits", "[model][joined_steps]") {
  Training training = one_byte_cap();
  training.find_unused_parameters = true;
  const StepWorks works = three_layers();
  const Schedule second = build_schedule(works, training);
  training.iteration = 1;
  training.find_unused_parameters = false;
  const Schedule first = build_schedule(works, training);
  const JoinedSteps steps =
      join_steps(std::vector<const Schedule*>{&first, &second, &second}, DdpAverages::samples);
  REQUIRE(steps.begins.size() == 3);
  CHECK(steps.schedule.tasks.size() == first.tasks.size() + 2 * (second.tasks.size() + 1));
  CHECK(steps.schedule.buckets.size() == first.buckets.size() + 2 * second.buckets.size());
  const std::vector<const Schedule*> each{&first, &second, &second};
  std::int32_t buckets = 0;
  for (std::size_t s = 0; s < each.size(); ++s) {
    const std::uint32_t begin = steps.begins[s] + (s > 0 ? 1 : 0);  // behind the read
    for (std::uint32_t i = 0; i < each[s]->tasks.size(); ++i) {
      const Task &task = steps.schedule.tasks[begin + i], &alone = each[s]->tasks[i];
      CHECK(task.operation == alone.operation);
      CHECK(steps.schedule.work_of(task) == each[s]->work_of(alone));
      CHECK(task.bucket == (alone.bucket == nobody ? nobody : alone.bucket + buckets));
      if (alone.gradient != nobody)
        CHECK(task.gradient == alone.gradient + static_cast<std::int32_t>(begin));
      const auto waits = steps.schedule.waits_for(task);
      const auto waits_alone = each[s]->waits_for(alone);
      REQUIRE(waits.size() == waits_alone.size());
      for (std::size_t w = 0; w < waits.size(); ++w) CHECK(waits[w] == waits_alone[w] + begin);
    }
    buckets += static_cast<std::int32_t>(each[s]->buckets.size());
  }
}

TEST_CASE("a collective that begins a step follows what was enqueued in the step before",
          "[model][joined_steps]") {
  Training training = one_byte_cap();
  training.join = Join{};
  const Schedule step = build_schedule(three_layers(), training);
  REQUIRE(step.work_of(step.tasks[0]).message == Message::active_ranks);
  CHECK(step.tasks[0].after_count == 0);
  const JoinedSteps steps = joined(step, 2);
  const std::uint32_t told = steps.begins[1] + 1;
  REQUIRE(steps.schedule.work_of(steps.schedule.tasks[told]).message == Message::active_ranks);
  const auto waits = steps.schedule.waits_for(steps.schedule.tasks[told]);
  REQUIRE(waits.size() == 1);
  CHECK(waits[0] == steps.begins[1] - 1);
  CHECK(steps.schedule.tasks[waits[0]].operation == Operation::optimizer);
}

TEST_CASE("there must be steps to join", "[model][joined_steps]") {
  CHECK_THROWS_AS(join_steps({}, DdpAverages::samples), std::invalid_argument);
}

TEST_CASE("works of joined steps stand once, and tasks keep theirs", "[model][joined_steps]") {
  // The first and the third step share all works, the second has another kernel.
  const Schedule small = handmade_step(100, 10), large = handmade_step(200, 10);
  const std::vector<const Schedule*> each{&small, &large, &small};
  const JoinedSteps steps = join_steps(each, [](int) { return false; });
  const Schedule& all = steps.schedule;
  CHECK(steps.begins == std::vector<std::uint32_t>{0, 3, 6});
  CHECK(all.works.size() == 4);  // two kernels, one all-reduce, one wait
  std::vector<std::int64_t> traffic;
  for (const std::uint32_t begin : steps.begins)
    traffic.push_back(all.work_of(all.tasks[begin]).traffic.count);
  CHECK(traffic == std::vector<std::int64_t>{100, 200, 100});
  CHECK(all.tasks[1].work == all.tasks[4].work);
  CHECK(all.tasks[0].work == all.tasks[6].work);
  // Buckets, and what points to tasks, are each step's own; an all-reduce waits for its step's
  // kernel alone.
  CHECK(all.buckets.size() == 3);
  CHECK(all.tasks[4].bucket == 1);
  CHECK(all.tasks[4].gradient == 3);
  REQUIRE(all.waits_for(all.tasks[4]).size() == 1);
  CHECK(all.waits_for(all.tasks[4])[0] == 3);
}

TEST_CASE("joined steps are a schedule of the same ranks, device, hooks and passes",
          "[model][joined_steps]") {
  Schedule first = handmade_step(100, 10), second = handmade_step(200, 10);
  for (Schedule* step : {&first, &second}) {
    step->ranks = 6;
    step->ranks_without_inputs = 2;
    step->hook_state = "state";
    step->hook_seed = 7;
    step->hooks.resize(2);
  }
  first.comm_hook_memory = {100};
  second.comm_hook_memory = {300};
  second.passes.forward = {0, 0};
  const std::vector<const Schedule*> each{&first, &second};
  const Schedule all = join_steps(each, [](int) { return false; }).schedule;
  CHECK(all.ranks == 6);
  CHECK(all.ranks_without_inputs == 2);
  CHECK_FALSE(all.synchronous);
  CHECK(all.hook_state == "state");
  CHECK(all.hook_seed == 7);
  CHECK(all.hooks.size() == 2);
  CHECK(all.comm_hook_memory == Bytes{300});  // one step at a time
  CHECK(all.passes.forward == std::vector<std::uint32_t>{0});
  for (Schedule* step : {&first, &second}) step->synchronous = true;
  CHECK(join_steps(each, [](int) { return false; }).schedule.synchronous);
}

TEST_CASE("passes of joined steps follow their works to their new numbers",
          "[model][joined_steps]") {
  Schedule first = handmade_step(100, 10);
  first.passes = {};  // of a step whose passes are not known
  Schedule second;
  second.works = {handmade::moved(Operation::backward, 7),
                  handmade::moved(Operation::forward, 100)};
  second.passes = {{1, 1}, {0}, {}};
  const std::vector<const Schedule*> each{&first, &second};
  const Schedule all = join_steps(each, [](int) { return false; }).schedule;
  const auto traffic = [&](std::uint32_t work) { return all.works.at(work).traffic.count; };
  REQUIRE(all.passes.forward.size() == 2);
  REQUIRE(all.passes.backward.size() == 1);
  CHECK(traffic(all.passes.forward[0]) == 100);
  CHECK(all.passes.forward[0] == 0);  // the first step has the same kernel
  CHECK(traffic(all.passes.backward[0]) == 7);
}

TEST_CASE("which iterations are sampled is asked once for each, in order",
          "[model][joined_steps]") {
  const Schedule step = handmade_step(100, 10);
  std::vector<int> asked;
  const std::vector<const Schedule*> each(4, &step);
  const JoinedSteps steps = join_steps(each, [&](int iteration) {
    asked.push_back(iteration);
    return iteration == 2;
  });
  CHECK(asked == std::vector<int>{1, 2, 3, 4});
  CHECK(reading(steps) == std::vector<std::size_t>{3});
  // The host waits for the last kernel of the second step: its wait, the third task.
  const Task& read = steps.schedule.tasks[steps.timer_reads[0].task];
  CHECK(read.operation == Operation::wait);
  REQUIRE(read.after_count == 1);
  CHECK(steps.schedule.waits_for(read)[0] == 5);
}
