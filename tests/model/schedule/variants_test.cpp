#include "model/schedule/variants.hpp"

#include <string>

#include <catch2/catch.hpp>

#include "model/schedule/fingerprint.hpp"
#include "tests/model/schedule/handmade.hpp"

using namespace ddpsim;
using namespace ddpsim::handmade;

namespace {

/// Two buckets, reduced by all; rank 0 waits for the first, updates and sends it, rank 1 the
/// second; then all wait for both.
Schedule two_owners() {
  Schedule schedule;
  schedule.ranks = 4;
  schedule.buckets.resize(2);
  add(schedule, moved(Operation::backward, 100), Stream::compute);
  add(schedule, sent(Operation::all_reduce, 10), Stream::communication, {0}).bucket = 0;
  add(schedule, sent(Operation::all_reduce, 10), Stream::communication, {0}).bucket = 1;
  for (std::int32_t bucket = 0; bucket < 2; ++bucket) {
    Task& wait = add(schedule, sent(Operation::wait, 0), Stream::host,
                     {static_cast<std::uint32_t>(1 + bucket)});
    wait.host_waits = true;
    wait.owner = wait.bucket = bucket;
    const auto reduced = static_cast<std::uint32_t>(schedule.tasks.size()) - 1;
    Task& update =
        add(schedule, moved(Operation::optimizer, 40 + bucket), Stream::compute, {reduced});
    update.owner = update.bucket = bucket;
    Task& send =
        add(schedule, sent(Operation::broadcast, 10), Stream::communication, {reduced + 1});
    send.owner = send.bucket = bucket;
  }
  add(schedule, sent(Operation::wait, 0), Stream::host, {5, 8}).host_waits = true;
  return schedule;
}

/// A kernel, the cast of a comm hook, its all-reduce, a cast behind it aside; another kernel
/// meanwhile; the wait for the cast, a copy out and the optimizer. Synchronous: kernels on the
/// host, what is aside on the thread that communicates.
Schedule hooked_step(bool synchronous) {
  const Stream kernels = synchronous ? Stream::host : Stream::compute;
  Schedule schedule;
  schedule.synchronous = synchronous;
  schedule.buckets.emplace_back().steps.resize(3);
  const auto of_hook = [](Task& task, std::int32_t step) {
    task.bucket = 0;
    task.step = step;
  };
  add(schedule, moved(Operation::backward, 100), kernels);
  of_hook(add(schedule, moved(Operation::cast, 10), kernels, {0}), 0);
  Task& reduce = add(schedule, sent(Operation::all_reduce, 5), Stream::communication, {1});
  of_hook(reduce, 1);
  reduce.gradient = 0;
  Work aside = moved(Operation::cast, 10);
  aside.aside = true;
  of_hook(add(schedule, aside, synchronous ? Stream::communication : Stream::aside, {2}), 2);
  add(schedule, moved(Operation::backward, 200), kernels);
  Task& wait = add(schedule, sent(Operation::wait, 0), kernels, {3});
  wait.bucket = 0;
  wait.host_waits = synchronous;
  add(schedule, moved(Operation::copy_out, 20), kernels, {5});
  add(schedule, moved(Operation::optimizer, 30), kernels);
  return schedule;
}

using Names = std::vector<std::string>;

/// "cast", "cast behind 0 2": a task and what it waits for.
Names tasks_of(const Schedule& schedule) {
  Names names;
  for (const Task& task : schedule.tasks) {
    std::string name(name_of(task.operation));
    if (task.after_count > 0) name += " behind";
    for (const std::uint32_t earlier : schedule.waits_for(task))
      name += " " + std::to_string(earlier);
    names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("what another rank owns takes no time, and is not waited for", "[model][variants]") {
  const Schedule shared = two_owners();
  const Schedule mine = schedule_of_rank(shared, 1);
  REQUIRE(mine.tasks.size() == shared.tasks.size());
  // Bucket 0 is rank 0's: its wait and its update are left out, its broadcast is not.
  const Task &wait = mine.tasks[3], &update = mine.tasks[4], &send = mine.tasks[5];
  CHECK_FALSE(wait.host_waits);
  CHECK(mine.waits_for(wait).empty());
  CHECK(mine.work_of(wait).launches == 0);
  CHECK_FALSE(mine.work_of(update).computes());
  CHECK(mine.work_of(update).launches == 0);
  CHECK(mine.work_of(update).operation == Operation::optimizer);
  CHECK(mine.waits_for(update).size() == 1);  // the order of the stream is what it was
  CHECK(mine.work_of(send) == shared.work_of(shared.tasks[5]));
  CHECK(mine.waits_for(send).size() == 1);
  // Bucket 1 is its own.
  for (const std::size_t own : {6, 7, 8, 9}) {
    CHECK(mine.work_of(mine.tasks[own]) == shared.work_of(shared.tasks[own]));
    CHECK(mine.tasks[own].host_waits == shared.tasks[own].host_waits);
    CHECK(mine.tasks[own].after_count == shared.tasks[own].after_count);
  }
}

TEST_CASE("all that a rank's schedule does not leave out is as it was", "[model][variants]") {
  const Schedule shared = two_owners();
  Schedule mine = schedule_of_rank(shared, 1);
  for (const std::size_t left_out : {3, 4}) {
    mine.tasks[left_out].work = shared.tasks[left_out].work;
    mine.tasks[left_out].host_waits = shared.tasks[left_out].host_waits;
    mine.tasks[left_out].after_count = shared.tasks[left_out].after_count;
  }
  REQUIRE(mine.works.size() == shared.works.size() + 2);  // nothing of a wait, and of an update
  mine.works.resize(shared.works.size());
  CHECK(fingerprint(mine) == fingerprint(shared));
}

TEST_CASE("ranks that own nothing are alike, and one that owns everything does everything",
          "[model][variants]") {
  Schedule shared = two_owners();
  CHECK(fingerprint(schedule_of_rank(shared, 2)) == fingerprint(schedule_of_rank(shared, 3)));
  CHECK(fingerprint(schedule_of_rank(shared, 2)) != fingerprint(schedule_of_rank(shared, 1)));
  for (Task& task : shared.tasks)
    if (task.owner != nobody) task.owner = 3;
  CHECK(fingerprint(schedule_of_rank(shared, 3)) == fingerprint(shared));
}

TEST_CASE("a rank's own schedule is the same for the same rank once more", "[model][variants]") {
  const Schedule mine = schedule_of_rank(two_owners(), 1);
  CHECK(fingerprint(schedule_of_rank(mine, 1)) == fingerprint(mine));
}

TEST_CASE("a step that every rank does alike is every rank's", "[model][variants]") {
  Schedule schedule;
  add(schedule, moved(Operation::forward, 100), Stream::compute);
  add(schedule, sent(Operation::broadcast, 10), Stream::communication, {0}).owner = 2;
  for (const int rank : {0, 1, 2})
    CHECK(fingerprint(schedule_of_rank(schedule, rank)) == fingerprint(schedule));
}

TEST_CASE("with all inputs no rank is without, and nothing else changes", "[model][variants]") {
  Schedule schedule = two_owners();
  schedule.ranks_without_inputs = 3;
  const Schedule all = with_all_inputs(schedule);
  CHECK(schedule.has_inputs(0));
  for (const int rank : {1, 2, 3}) CHECK_FALSE(schedule.has_inputs(rank));
  for (const int rank : {0, 1, 2, 3}) CHECK(all.has_inputs(rank));
  CHECK(fingerprint(all) != fingerprint(schedule));
  schedule.ranks_without_inputs = 0;
  CHECK(fingerprint(all) == fingerprint(schedule));
}

TEST_CASE("what waited for a task that is left out waits for what that one waited for",
          "[model][variants]") {
  Schedule schedule;
  add(schedule, moved(Operation::forward, 1), Stream::compute);
  add(schedule, moved(Operation::forward, 2), Stream::compute);
  add(schedule, sent(Operation::all_reduce, 1), Stream::communication, {0, 1});
  add(schedule, sent(Operation::all_reduce, 2), Stream::communication, {1});
  add(schedule, sent(Operation::wait, 0), Stream::compute, {2, 3});
  Task& last = add(schedule, moved(Operation::backward, 3), Stream::compute, {4});
  last.gradient = 4;
  schedule.logged = {{0, 6}};
  const auto collectives = [](const Task& task) { return is_collective(task.operation); };
  const Schedule silent = without(schedule, collectives);
  // Each of the first two once, though two ways lead to the second.
  CHECK(tasks_of(silent) == Names{"forward", "forward", "wait behind 0 1", "backward behind 2"});
  CHECK(silent.tasks[3].gradient == 2);
  CHECK(silent.work_of(silent.tasks[3]) == schedule.work_of(schedule.tasks[5]));
  CHECK(silent.logged.empty());  // what the logger saw is no longer there
  const Schedule bare = without(schedule, [&](const Task& task) {
    return collectives(task) || task.operation == Operation::wait;
  });
  CHECK(tasks_of(bare) == Names{"forward", "forward", "backward behind 0 1"});
  CHECK(bare.tasks[2].gradient == 1);
  // Of a task that waited for nothing, nothing is left to wait for.
  const Schedule late =
      without(schedule, [](const Task& task) { return task.operation == Operation::forward; });
  CHECK(tasks_of(late) ==
        Names{"all-reduce", "all-reduce", "wait behind 0 1", "backward behind 2"});
}

TEST_CASE("a step of which nothing is left out is the step", "[model][variants]") {
  Schedule schedule = two_owners();
  CHECK(fingerprint(without(schedule, [](const Task&) { return false; })) == fingerprint(schedule));
  CHECK(without(schedule, [](const Task&) { return true; }).tasks.empty());
}

TEST_CASE("without communication nothing is sent, and each kernel waits for the kernels before it",
          "[model][variants]") {
  const Schedule silent = without_communication(hooked_step(false));
  CHECK(tasks_of(silent) == Names{"backward", "cast behind 0", "cast behind 1", "backward",
                                  "wait behind 2", "copy out behind 4", "optimizer"});
  CHECK(silent.tasks[2].stream == Stream::aside);
}

TEST_CASE("without communication the ranks of a synchronous device meet where they waited",
          "[model][variants]") {
  const Schedule silent = without_communication(hooked_step(true));
  CHECK(tasks_of(silent) == Names{"backward", "cast behind 0", "cast behind 1", "backward", "meet",
                                  "copy out behind 2", "optimizer"});
  // What was computed beside communication is computed where the hook is called.
  for (const Task& task : silent.tasks) CHECK(task.stream == Stream::host);
  CHECK(silent.tasks[4].host_waits);
  // Not where a rank waited for what it alone updates.
  Schedule owned = hooked_step(true);
  owned.tasks[5].owner = 0;
  CHECK(tasks_of(without_communication(owned)) == Names{"backward", "cast behind 0",
                                                        "cast behind 1", "backward",
                                                        "copy out behind 2", "optimizer"});
}

TEST_CASE("without communication nothing is copied to hosts and back", "[model][variants]") {
  Schedule schedule;
  add(schedule, moved(Operation::backward, 1), Stream::compute);
  add(schedule, sent(Operation::copy_to_host, 4), Stream::to_host, {0});
  add(schedule, sent(Operation::all_reduce, 4), Stream::communication, {1});
  add(schedule, sent(Operation::copy_to_device, 4), Stream::to_device, {2});
  add(schedule, sent(Operation::wait, 0), Stream::compute, {3});
  CHECK(tasks_of(without_communication(schedule)) == Names{"backward", "wait behind 0"});
}

TEST_CASE("pauses stand for the collectives of a comm hook, as long as is said",
          "[model][variants]") {
  Schedule schedule = hooked_step(true);
  schedule.works[schedule.tasks[2].work].communicator = 1;
  add(schedule, sent(Operation::broadcast, 3), Stream::communication);  // of DDP's own
  const Schedule paused = with_pauses(schedule, [](const Work& work) {
    CHECK(work.operation == Operation::all_reduce);
    return Duration{1000 * work.payload.count};
  });
  CHECK(tasks_of(paused) == Names{"backward", "cast behind 0", "pause behind 1", "cast behind 2",
                                  "backward", "meet", "wait behind 3", "copy out behind 6",
                                  "optimizer"});
  const Task& pause = paused.tasks[2];
  CHECK(paused.work_of(pause).host == Duration{5000});
  CHECK(paused.work_of(pause).communicator == 1);
  CHECK(pause.stream == Stream::communication);
  CHECK(pause.step == 1);
  CHECK(paused.tasks[3].stream == Stream::communication);  // the cast, aside as ever
}

TEST_CASE("a step without updates, and one done several times", "[model][variants]") {
  const Schedule schedule = hooked_step(false);
  CHECK(tasks_of(without_updates(schedule)) ==
        Names{"backward", "cast behind 0", "all-reduce behind 1", "cast behind 2", "backward",
              "wait behind 3", "copy out behind 5"});
  CHECK(repeated(schedule, 3).rounds == 3);
  CHECK(repeated(repeated(schedule, 3), 2).rounds == 6);
  CHECK(fingerprint(repeated(schedule, 1)) == fingerprint(schedule));
  CHECK(fingerprint(repeated(schedule, 2)) != fingerprint(schedule));
  CHECK_THROWS_AS(repeated(schedule, 0), std::invalid_argument);
}

TEST_CASE("all-reduces in the background go beside a step that sends nothing itself",
          "[model][variants]") {
  CHECK_THROWS_AS(with_background(hooked_step(true), Bytes{100}), std::invalid_argument);
  const Schedule silent = without_communication(hooked_step(true));
  const Schedule beside = with_background(silent, Bytes{100}, Duration{7});
  CHECK(beside.background.size == Bytes{100});
  CHECK(beside.background.pause == Duration{7});
  // Each rank at its own pace: they do not meet.
  CHECK(tasks_of(beside) == Names{"backward", "cast behind 0", "cast behind 1", "backward",
                                  "copy out behind 2", "optimizer"});
  CHECK(fingerprint(beside) != fingerprint(with_background(silent, Bytes{200}, Duration{7})));
  CHECK(fingerprint(beside) != fingerprint(with_background(silent, Bytes{100})));
}
