#include "model/program/joined_jobs.hpp"

#include <catch2/catch.hpp>

#include "model/parallel/order/build_job.hpp"
#include "model/program/check.hpp"
#include "model/program/operands.hpp"
#include "model/program/text.hpp"
#include "model/timeline/ddp_statistics.hpp"
#include "tests/model/parallel/random_trainings.hpp"
#include "tests/model/workload/timed.hpp"

using namespace std::chrono_literals;

namespace ddpsim::program {
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

Job job_with(const Training& training, const StepWorks& works = three_layers()) {
  return build_job(works, training);
}

JoinedJobs joined(const Job& step, std::size_t count) {
  const std::vector<const Job*> kinds{&step};
  return join(kinds, std::vector<std::int32_t>(count, 0), DdpAverages::samples);
}

/// [step] in whose forward timers are read, counted from 1
std::vector<std::size_t> reading(const JoinedJobs& steps) {
  std::vector<std::size_t> result;
  for (const JoinedJobs::TimerRead& read : steps.timer_reads) result.push_back(read.step + 1);
  return result;
}

Operation operation_of(const JoinedJobs& steps, std::uint32_t task) {
  return steps.job.works[steps.job.programs.front().tasks.at(task).work].operation;
}

/// A forward kernel that writes a gradient, its all-reduce, and the wait for that, which DDP's
/// logger counts.
Job handmade_step(std::int64_t traffic) {
  Job job;
  job.labels = {"", "g"};
  job.streams = {{.name = "host"}, {.name = "compute"}, {"communication", true, true, 1}};
  job.communicators = {{"world", 1, {{0, 1}}}};
  job.buffers = {
      {.holds = Holds::gradient, .index = 0, .name = 1, .elements = 8, .life = Life::step}};
  const Slice gradient{.buffer = 0, .count = 8};
  job.works.resize(3);
  job.works[0] = moving(Operation::forward, Bytes{traffic});
  job.works[1].operation = Operation::all_reduce;
  job.works[2].operation = Operation::wait;
  job.groups = {{{0}, Bytes{32}}};
  Origin of_group;
  of_group.group = 0;
  job.own.deeds = {
      {Compute{.result = gradient}, {}},
      {Collective{.reduction = Reduction::sum, .from = gradient, .to = gradient}, of_group},
      {Wait{}, of_group}};
  job.passes.forward = {0};
  job.program_of = {0, 0};
  Program& program = job.programs.emplace_back();
  program.tasks = {{.work = 0, .deed = 0, .stream = 1},
                   {.work = 1, .deed = 1, .after_end = 1, .stream = 2},
                   {.work = 2, .deed = 2, .after_end = 2, .stream = 1}};
  program.after = {0, 1};
  program.marks = {{Mark::Kind::ready, 1, 0}, {Mark::Kind::logged, 0, 2}};
  job.gradients = {gradient};
  return job;
}

bool never(int /*iteration*/) {
  return false;
}

TEST_CASE("R47: timers are read at the forward after iterations 1 to 10, then 100, 200 and so on",
          "[model][joined_jobs]") {
  const Job step = job_with(one_byte_cap());
  const std::vector<std::size_t> after_ten{2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  CHECK(reading(joined(step, 1)).empty());
  CHECK(reading(joined(step, 3)) == std::vector<std::size_t>{2, 3});
  CHECK(reading(joined(step, 11)) == after_ten);
  CHECK(reading(joined(step, 100)) == after_ten);
  std::vector<std::size_t> two_hundred = after_ten;
  two_hundred.insert(two_hundred.end(), {101, 201});
  CHECK(reading(joined(step, 299)) == two_hundred);
}

TEST_CASE("R47: the host waits for the last copy back, before all else of the next step",
          "[model][joined_jobs]") {
  const JoinedJobs steps = joined(job_with(one_byte_cap()), 2);
  const Program& program = steps.job.programs.front();
  REQUIRE(steps.timer_reads.size() == 1);
  const std::uint32_t read = steps.timer_reads[0].task;
  CHECK(read == steps.begins[1]);
  CHECK(program.tasks[read].stream == 0);
  CHECK(std::holds_alternative<Wait>(steps.job.deed_of(program.tasks[read]).action));
  REQUIRE(program.waits_for(read).size() == 1);
  const std::uint32_t mark = program.waits_for(read)[0];
  CHECK(operation_of(steps, mark) == Operation::copy_out);
  // The optimizer comes behind the mark: the device still has it to do when the host goes on.
  CHECK(operation_of(steps, mark + 1) == Operation::optimizer);
}

TEST_CASE("R47: other strategies have no logger, nor has the host's own clock to be waited for",
          "[model][joined_jobs]") {
  for (const Strategy strategy :
       {Strategy::none, Strategy::naive, Strategy::flat, Strategy::overlap}) {
    CAPTURE(ddpsim::name_of(strategy));
    CHECK(joined(job_with(timed::training_of(strategy)), 12).timer_reads.empty());
  }
  CHECK(joined(job_with(one_byte_cap(), three_layers(true)), 12).timer_reads.empty());
}

TEST_CASE("R47: within no_sync there is no iteration, and without it each micro-batch is one",
          "[model][joined_jobs]") {
  Training training = one_byte_cap();
  training.micro_batches = 4;
  training.no_sync = true;
  const auto read_before = [](const JoinedJobs& steps, std::size_t which) {
    return steps.timer_reads.at(which).task + 1;
  };
  const auto micro_batch = [](const JoinedJobs& steps, std::uint32_t task) {
    return static_cast<int>(steps.job.programs.front().tasks[task].micro_batch);
  };
  const JoinedJobs silent = joined(job_with(training), 13);
  CHECK(silent.timer_reads.size() == 10);
  for (std::size_t i = 0; i < silent.timer_reads.size(); ++i) {
    CHECK(silent.timer_reads[i].step == i + 1);
    // The first forward that will communicate.
    CHECK(micro_batch(silent, read_before(silent, i)) == 3);
    CHECK(operation_of(silent, read_before(silent, i)) == Operation::forward);
  }
  training.no_sync = false;
  const JoinedJobs all = joined(job_with(training), 13);
  // Iterations 1 to 10 are the first ten micro-batches: the reads before the second to the
  // eleventh.
  REQUIRE(all.timer_reads.size() == 10);
  for (std::size_t i = 0; i < all.timer_reads.size(); ++i) {
    CHECK(all.timer_reads[i].step == (i + 1) / 4);
    CHECK(micro_batch(all, read_before(all, i)) == static_cast<int>((i + 1) % 4));
  }
}

TEST_CASE("joined steps keep their tasks, order, waits and operands", "[model][joined_jobs]") {
  Training training = one_byte_cap();
  training.find_unused_parameters = true;
  const StepWorks works = three_layers();
  const Job second = job_with(training, works);
  training.iteration = 1;
  training.find_unused_parameters = false;
  const Job first = job_with(training, works);
  const std::vector<const Job*> kinds{&first, &second};
  const JoinedJobs steps = join(kinds, std::vector<std::int32_t>{0, 1, 1}, DdpAverages::samples);
  const Program& all = steps.job.programs.front();
  REQUIRE(steps.begins.size() == 3);
  CHECK(steps.job.groups.size() == first.groups.size() + second.groups.size());
  const std::vector<const Job*> each{&first, &second, &second};
  std::size_t tasks = 0;
  for (std::size_t s = 0; s < each.size(); ++s) {
    const Job& job = *each[s];
    const Program& alone = job.programs.front();
    const std::uint32_t begin = steps.begins[s] + (s > 0 ? 1 : 0);  // behind the read
    const auto groups = static_cast<std::int32_t>(s == 0 ? 0 : first.groups.size());
    tasks += alone.tasks.size() + (s > 0 ? 1 : 0);
    for (std::uint32_t i = 0; i < alone.tasks.size(); ++i) {
      const Task& task = all.tasks[begin + i];
      const Deed &deed = steps.job.deed_of(task), &wanted = job.deed_of(alone.tasks[i]);
      CHECK(deed.action.index() == wanted.action.index());
      CHECK(steps.job.works[task.work] == job.works[alone.tasks[i].work]);
      CHECK(steps.job.streams[task.stream].name == job.streams[alone.tasks[i].stream].name);
      CHECK(deed.origin.group ==
            (wanted.origin.group == nobody ? nobody : wanted.origin.group + groups));
      const Accesses has = accesses_of(deed.action, steps.job.actions_of(task)),
                     had = accesses_of(wanted.action, job.actions_of(alone.tasks[i]));
      REQUIRE(has.reads.size() == had.reads.size());
      for (std::size_t k = 0; k < has.reads.size(); ++k)
        CHECK(text_of(steps.job, has.reads[k]) == text_of(job, had.reads[k]));
      REQUIRE(has.writes.size() == had.writes.size());
      for (std::size_t k = 0; k < has.writes.size(); ++k)
        CHECK(text_of(steps.job, has.writes[k]) == text_of(job, had.writes[k]));
      const auto waits = all.waits_for(begin + i);
      const auto waits_alone = alone.waits_for(i);
      REQUIRE(waits.size() == waits_alone.size());
      for (std::size_t w = 0; w < waits.size(); ++w) CHECK(waits[w] == waits_alone[w] + begin);
    }
  }
  CHECK(all.tasks.size() == tasks);
}

TEST_CASE("random steps, joined, are a job that holds together", "[model][joined_jobs]") {
  drawn::Draw draw(73);
  int several = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const drawn::RandomStep step = drawn::random_step_of(draw);
    const Job& job = step.job;
    if (job.programs.size() != 1 || job.beside || job.programs.front().rounds != 1) continue;
    if (step.works.device.collectives_at_once > 1) continue;
    ++several;
    const JoinedJobs three = joined(job, 3);
    REQUIRE(three.job.buffers.size() == job.buffers.size());  // each once
    REQUIRE(three.job.own.deeds.size() == job.known_deeds() + job.own.deeds.size() + 1);
    REQUIRE_NOTHROW(check(three.job));
  }
  CHECK(several > 50);
}

TEST_CASE("a collective that begins a step follows what was enqueued in the step before",
          "[model][joined_jobs]") {
  Training training = one_byte_cap();
  training.join = Join{};
  const Job step = job_with(training);
  const auto tells = [](const Job& job, std::uint32_t task) {
    return job.works[job.programs.front().tasks[task].work].message == Message::active_ranks;
  };
  REQUIRE(tells(step, 0));
  CHECK(step.programs.front().waits_for(0).empty());
  const JoinedJobs steps = joined(step, 2);
  const std::uint32_t told = steps.begins[1] + 1;
  REQUIRE(tells(steps.job, told));
  const auto waits = steps.job.programs.front().waits_for(told);
  REQUIRE(waits.size() == 1);
  CHECK(waits[0] == steps.begins[1] - 1);
  CHECK(operation_of(steps, waits[0]) == Operation::optimizer);
}

TEST_CASE("there must be steps to join, of ranks that are alike", "[model][joined_jobs]") {
  Job step = handmade_step(100);
  const std::vector<const Job*> kinds{&step};
  CHECK_THROWS_AS(join(kinds, {}, never), std::invalid_argument);
  step.programs.push_back(step.programs.front());
  CHECK_THROWS_WITH(join(kinds, std::vector<std::int32_t>{0}, never),
                    "steps are joined of ranks that are all alike");
}

TEST_CASE("what joined steps have alike stands once", "[model][joined_jobs]") {
  // The first and the third step are one kind, the second has another kernel.
  const Job small = handmade_step(100), large = handmade_step(200);
  const std::vector<const Job*> kinds{&small, &large};
  const JoinedJobs steps = join(kinds, std::vector<std::int32_t>{0, 1, 0}, never);
  const Job& all = steps.job;
  const Program& program = all.programs.front();
  CHECK(steps.begins == std::vector<std::uint32_t>{0, 3, 6});
  CHECK(all.works.size() == 4);  // two kernels, one all-reduce, one wait
  CHECK(all.buffers.size() == 1);
  CHECK(all.own.deeds.size() == 7);  // three of each kind, and a read of timers
  CHECK(all.program_of.size() == 2);
  std::vector<std::int64_t> traffic;
  for (const std::uint32_t begin : steps.begins)
    traffic.push_back(all.works[program.tasks[begin].work].traffic.count);
  CHECK(traffic == std::vector<std::int64_t>{100, 200, 100});
  CHECK(program.tasks[1].work == program.tasks[4].work);
  CHECK(program.tasks[0].deed == program.tasks[6].deed);
  // What points to tasks is each step's own; an all-reduce waits for its step's kernel alone.
  REQUIRE(program.waits_for(4).size() == 1);
  CHECK(program.waits_for(4)[0] == 3);
  CHECK(program.marks.size() == 6);
  CHECK(program.marks[2].task == 4);
  CHECK(program.marks[2].of == 3);
  CHECK(all.deed_of(program.tasks[4]).origin.group == 1);
  REQUIRE(all.groups.size() == 2);
  REQUIRE(all.gradients.size() == 1);
  CHECK(all.gradients[0] == Slice{.buffer = 0, .count = 8});
}

TEST_CASE("passes of joined steps follow their works to their new numbers",
          "[model][joined_jobs]") {
  Job first = handmade_step(100);
  first.passes = {};  // of a step whose passes are not known
  Job second = handmade_step(100);
  std::swap(second.works[0], second.works[2]);
  for (Task& task : second.programs.front().tasks) task.work = 2 - task.work;
  second.passes = {{2, 2}, {0}, {}};
  const std::vector<const Job*> kinds{&first, &second};
  const Job all = join(kinds, std::vector<std::int32_t>{0, 1}, never).job;
  CHECK(all.passes.forward == std::vector<std::uint32_t>{0, 0});  // the first step's kernel
  REQUIRE(all.passes.backward.size() == 1);
  CHECK(all.works[all.passes.backward[0]].operation == Operation::wait);
}

TEST_CASE("buffers come and go at their places in each step", "[model][joined_jobs]") {
  Job step = handmade_step(100);
  step.buffers[0].life = Life::held;
  step.programs.front().holds = {{0, 0, 1, true}, {3, 0, 1, false}};
  const Program program = joined(step, 2).job.programs.front();
  // A read of timers stands before the second step.
  REQUIRE(program.holds.size() == 4);
  CHECK(program.holds[1].before == 3);
  CHECK_FALSE(program.holds[1].begins);
  CHECK(program.holds[2].before == 4);
  CHECK(program.holds[2].begins);
  CHECK(program.holds[3].before == 7);
}

TEST_CASE("which iterations are sampled is asked once for each, in order", "[model][joined_jobs]") {
  const Job step = handmade_step(100);
  std::vector<int> asked;
  const std::vector<const Job*> kinds{&step};
  const JoinedJobs steps = join(kinds, std::vector<std::int32_t>(4, 0), [&](int iteration) {
    asked.push_back(iteration);
    return iteration == 2;
  });
  CHECK(asked == std::vector<int>{1, 2, 3, 4});
  CHECK(reading(steps) == std::vector<std::size_t>{3});
  // The host waits for the last kernel of the second step: its wait, the third task.
  const auto waits = steps.job.programs.front().waits_for(steps.timer_reads[0].task);
  REQUIRE(waits.size() == 1);
  CHECK(waits[0] == 5);
}

}  // namespace
}  // namespace ddpsim::program
