#include "model/program/variants.hpp"

#include <string>

#include <catch2/catch.hpp>

#include "model/program/fingerprint.hpp"
#include "tests/model/program/handmade.hpp"

using namespace ddpsim;
using namespace ddpsim::handmade;

namespace {

/// A kernel, the cast of a comm hook, its all-reduce, a cast behind it aside; another kernel
/// meanwhile; the wait for the cast, a copy out and the optimizer. Synchronous: kernels on the
/// host, what is aside on the thread that communicates.
FlatStep hooked_step(bool synchronous) {
  const StepStream kernels = synchronous ? StepStream::host : StepStream::compute;
  FlatStep schedule;
  schedule.buckets.emplace_back();
  const auto of_hook = [](FlatTask& task, const std::string& step) {
    task.bucket = 0;
    task.hook_step = step;
  };
  add(schedule, moved(Operation::backward, 100), kernels);
  of_hook(add(schedule, moved(Operation::cast, 10), kernels, {0}), "narrow");
  FlatTask& reduce = add(schedule, sent(Operation::all_reduce, 5), StepStream::communication, {1});
  of_hook(reduce, "reduce");
  reduce.gradient = 0;
  Work aside = moved(Operation::cast, 10);
  aside.aside = true;
  of_hook(add(schedule, aside, synchronous ? StepStream::communication : StepStream::aside, {2}),
          "widen");
  add(schedule, moved(Operation::backward, 200), kernels);
  FlatTask& wait = add(schedule, sent(Operation::wait, 0), kernels, {3});
  wait.bucket = 0;
  add(schedule, moved(Operation::copy_out, 20), kernels, {5});
  add(schedule, moved(Operation::optimizer, 30), kernels);
  return schedule;
}

using Names = std::vector<std::string>;

/// "cast", "cast behind 0 2": a task and what it waits for.
Names tasks_of(const program::Job& job, std::size_t kind = 0) {
  const FlatStep schedule = flat(job, kind);
  Names names;
  for (const FlatTask& task : schedule.tasks) {
    std::string name(name_of(task.operation));
    if (task.after_count > 0) name += " behind";
    for (const std::uint32_t earlier : schedule.waits_for(task))
      name += " " + std::to_string(earlier);
    names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("what waited for a task that is left out waits for what that one waited for",
          "[model][program][variants]") {
  FlatStep schedule;
  add(schedule, moved(Operation::forward, 1), StepStream::compute);
  add(schedule, moved(Operation::forward, 2), StepStream::compute);
  add(schedule, sent(Operation::all_reduce, 1), StepStream::communication, {0, 1});
  add(schedule, sent(Operation::all_reduce, 2), StepStream::communication, {1});
  add(schedule, sent(Operation::wait, 0), StepStream::compute, {2, 3});
  FlatTask& last = add(schedule, moved(Operation::backward, 3), StepStream::compute, {4});
  last.gradient = 4;
  schedule.logged = {{program::Mark::Kind::logged, 0, 5}};
  const program::Job job = job_of(schedule);
  const auto is_of = [&](const program::Task& task, auto predicate) {
    return predicate(job.works[task.work].operation);
  };
  const auto collectives = [&](const program::Task& task) { return is_of(task, is_collective); };
  const program::Job quiet = without(job, collectives);
  const FlatStep silent = flat(quiet);
  // Each of the first two once, though two ways lead to the second.
  CHECK(tasks_of(quiet) == Names{"forward", "forward", "wait behind 0 1", "backward behind 2"});
  CHECK(silent.tasks[3].gradient == 2);
  CHECK(silent.work_of(silent.tasks[3]) == schedule.work_of(schedule.tasks[5]));
  CHECK(silent.logged.empty());  // what the logger saw is no longer there
  const program::Job bare = without(job, [&](const program::Task& task) {
    return collectives(task) || job.works[task.work].operation == Operation::wait;
  });
  CHECK(tasks_of(bare) == Names{"forward", "forward", "backward behind 0 1"});
  CHECK(flat(bare).tasks[2].gradient == 1);
  // Where a task that is taken out waited for nothing, nothing is left to wait for.
  const program::Job late = without(job, [&](const program::Task& task) {
    return job.works[task.work].operation == Operation::forward;
  });
  CHECK(tasks_of(late) ==
        Names{"all-reduce", "all-reduce", "wait behind 0 1", "backward behind 2"});
}

TEST_CASE("a step of which nothing is left out is the step", "[model][program][variants]") {
  const program::Job job = job_of(hooked_step(false));
  const program::Job same = without(job, [](const program::Task&) { return false; });
  CHECK(fingerprint(same) == fingerprint(job));
  const program::Job none = without(job, [](const program::Task&) { return true; });
  CHECK(none.programs.front().tasks.empty());
}

TEST_CASE("lives of buffers begin and end before the tasks that are left",
          "[model][program][variants]") {
  program::Job job = job_of(hooked_step(false));
  job.programs.front().holds = {{.before = 2, .begins = true}, {.before = 4}, {.before = 8}};
  const program::Job quiet = without_communication(job);
  std::vector<std::uint32_t> before;
  for (const program::Hold& hold : quiet.programs.front().holds) before.push_back(hold.before);
  CHECK(before == std::vector<std::uint32_t>{2, 3, 7});
}

TEST_CASE("without communication nothing is sent, and each kernel waits for the kernels before it",
          "[model][program][variants]") {
  const program::Job silent = without_communication(job_of(hooked_step(false)));
  CHECK(tasks_of(silent) == Names{"backward", "cast behind 0", "cast behind 1", "backward",
                                  "wait behind 2", "copy out behind 4", "optimizer"});
  CHECK(flat(silent).tasks[2].stream == StepStream::aside);
}

TEST_CASE("without communication the ranks of a synchronous device meet where they waited",
          "[model][program][variants]") {
  const program::Job job = job_of(hooked_step(true), 2);
  const program::Job silent = without_communication(job);
  CHECK(tasks_of(silent) == Names{"backward", "cast behind 0", "cast behind 1", "backward", "meet",
                                  "copy out behind 2", "optimizer"});
  // What was computed beside communication is computed where the hook is called.
  for (const FlatTask& task : flat(silent).tasks) CHECK(task.stream == StepStream::host);
  // Not where a rank waited for what it alone updates.
  program::Job owned = job;
  owned.programs.push_back(program::without(job, [](const program::Task& task) {
                             return task.deed == 5;
                           }).programs.front());
  owned.program_of = {0, 1};
  CHECK(tasks_of(without_communication(owned)) == Names{"backward", "cast behind 0",
                                                        "cast behind 1", "backward",
                                                        "copy out behind 2", "optimizer"});
}

TEST_CASE("without communication nothing is copied to hosts and back",
          "[model][program][variants]") {
  FlatStep schedule;
  add(schedule, moved(Operation::backward, 1), StepStream::compute);
  add(schedule, sent(Operation::copy_to_host, 4), StepStream::to_host, {0});
  add(schedule, sent(Operation::all_reduce, 4), StepStream::communication, {1});
  add(schedule, sent(Operation::copy_to_device, 4), StepStream::to_device, {2});
  add(schedule, sent(Operation::wait, 0), StepStream::compute, {3});
  CHECK(tasks_of(without_communication(job_of(schedule))) == Names{"backward", "wait behind 0"});
}

TEST_CASE("pauses stand for the collectives of a comm hook, as long as is said",
          "[model][program][variants]") {
  FlatStep schedule = hooked_step(true);
  schedule.works[schedule.tasks[2].work].communicator = 1;
  add(schedule, sent(Operation::broadcast, 3), StepStream::communication);  // of DDP's own
  const program::Job with = with_pauses(job_of(schedule), [](const Work& work) {
    CHECK(work.operation == Operation::all_reduce);
    return Duration{1000 * work.payload.count};
  });
  CHECK(tasks_of(with) == Names{"backward", "cast behind 0", "pause behind 1", "cast behind 2",
                                "backward", "meet", "wait behind 3", "copy out behind 6",
                                "optimizer"});
  const FlatStep paused = flat(with);
  const FlatTask& pause = paused.tasks[2];
  CHECK(paused.work_of(pause).host == Duration{5000});
  CHECK(paused.work_of(pause).communicator == 1);
  CHECK(pause.stream == StepStream::communication);
  CHECK(pause.hook_step == "reduce");
  CHECK(paused.tasks[3].stream == StepStream::communication);  // the cast, aside as ever
}

TEST_CASE("a step without updates, and one done several times", "[model][program][variants]") {
  const program::Job job = job_of(hooked_step(false));
  CHECK(tasks_of(without_updates(job)) == Names{"backward", "cast behind 0", "all-reduce behind 1",
                                                "cast behind 2", "backward", "wait behind 3",
                                                "copy out behind 5"});
  CHECK(repeated(job, 3).programs.front().rounds == 3);
  CHECK(repeated(repeated(job, 3), 2).programs.front().rounds == 6);
  CHECK(fingerprint(repeated(job, 1)) == fingerprint(job));
  CHECK(fingerprint(repeated(job, 2)) != fingerprint(job));
  CHECK_THROWS_AS(repeated(job, 0), std::invalid_argument);
}

TEST_CASE("all-reduces in the background go beside a step that sends nothing itself",
          "[model][program][variants]") {
  const program::Job job = job_of(hooked_step(true), 3);
  CHECK_THROWS_AS(with_background(job, Bytes{100}), std::invalid_argument);
  const program::Job silent = without_communication(job);
  const program::Job beside = with_background(silent, Bytes{100}, Duration{7});
  REQUIRE(beside.beside);
  const std::vector<program::Task>& tasks = beside.beside->tasks;
  REQUIRE(tasks.size() == 2);
  CHECK(beside.works[tasks[0].work].host == Duration{7});
  CHECK(beside.works[tasks[1].work].payload == Bytes{100});
  const auto& sent = std::get<program::Collective>(beside.deed_of(tasks[1]).action);
  CHECK(beside.communicators.at(at(sent.communicator)).groups ==
        std::vector<std::vector<std::int32_t>>{{0, 1, 2}});
  CHECK(sent.from.count == 25);
  CHECK(with_background(silent, Bytes{100}).beside->tasks.size() == 1);
  // Each rank at its own pace: they do not meet.
  CHECK(tasks_of(beside) == Names{"backward", "cast behind 0", "cast behind 1", "backward",
                                  "copy out behind 2", "optimizer"});
  CHECK(fingerprint(beside) != fingerprint(with_background(silent, Bytes{200}, Duration{7})));
  CHECK(fingerprint(beside) != fingerprint(with_background(silent, Bytes{100})));
}
