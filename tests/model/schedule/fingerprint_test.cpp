#include "model/schedule/fingerprint.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "model/ddp/build_schedule.hpp"
#include "tests/model/ddp/schedule_story.hpp"
#include "tests/model/schedule/changes.hpp"

using namespace ddpsim;

namespace {

/// A little of everything a schedule can hold.
Schedule full_schedule() {
  Schedule schedule;
  Work multiplication;
  multiplication.gemm = Gemm{8, 16, 32, 1};
  multiplication.traffic = 4 * KiB;
  Work timed;
  timed.known_time = Duration{1000};
  Work sum;
  sum.operation = Operation::all_reduce;
  sum.payload = 1 * MiB;
  schedule.works = {multiplication, timed, sum};
  schedule.after = {0, 1};
  for (std::uint32_t i = 0; i < 3; ++i) {
    Task& task = schedule.tasks.emplace_back();
    task.work = i;
    task.after_count = i == 2 ? 2 : 0;
  }
  Bucket& plain = schedule.buckets.emplace_back();
  plain.parameters = {3, 2};
  Bucket& hooked = schedule.buckets.emplace_back();
  hooked.parameters = {1};
  hooked.steps.resize(2);
  hooked.steps[0].kernel.time = Duration{5};
  hooked.steps[1].code = "code";
  hooked.gradients = {{4, 2}};
  hooked.low_rank = {{0, 4, 2, 1}};
  UserHook& hook = schedule.hooks.emplace_back();
  hook.groups = {{1, 2}, {}};
  hook.layers = {0};
  hook.outputs = {Bytes{7}};
  schedule.passes = {{0}, {1, 1}, {}};
  schedule.logged = {{0, 3}};
  schedule.hook_state = "state";
  return schedule;
}

/// Checks that each change of one field has a fingerprint of its own, and says how many there are.
std::size_t fingerprints_of_changes(const Schedule& schedule) {
  std::set<std::uint64_t> seen{fingerprint(schedule)};
  std::size_t count = 1;
  changes::for_each_change<Schedule>(schedule, [&](const Schedule& other) {
    ++count;
    seen.insert(fingerprint(other));
  });
  CHECK(seen.size() == count);
  return count;
}

}  // namespace

TEST_CASE("a schedule that differs in one field of anything has another fingerprint",
          "[model][fingerprint]") {
  // Of three works 16 fields each, of three tasks 17, of two steps 14, of two buckets 8, of a hook
  // 12; and what is inside of them.
  CHECK(fingerprints_of_changes(full_schedule()) > 3 * 16 + 3 * 17 + 2 * 14 + 2 * 8 + 12);
}

TEST_CASE("in a real step every field of every task, dependency, work and step counts",
          "[model][fingerprint]") {
  Training training;
  training.buckets = {{2, 1}, {0}};
  training.comm_hook.kind = CommHookKind::powersgd;
  training.comm_hook.powersgd.min_compression_rate = 0.5;
  Workload workload = timed::two_layers();
  workload.parameters[0].shape = {20, 50};
  const Schedule schedule = build_schedule(timed::works_of(workload, timed::two_ranks()), training);
  CHECK(fingerprints_of_changes(schedule) > 17 * schedule.tasks.size() + 14);
}

TEST_CASE("equal schedules have equal fingerprints, however they came to be",
          "[model][fingerprint]") {
  const Schedule schedule = full_schedule();
  Schedule copy = schedule;
  CHECK(fingerprint(copy) == fingerprint(schedule));
  copy.tasks[1].divisor = 2;
  CHECK(fingerprint(copy) != fingerprint(schedule));
  copy.tasks[1].divisor = 1;
  CHECK(fingerprint(copy) == fingerprint(schedule));
}

TEST_CASE("the order of works, tasks, dependencies and buckets counts", "[model][fingerprint]") {
  const Schedule schedule = full_schedule();
  const auto exchanged = [&](auto list) {
    Schedule other = schedule;
    std::swap(list(other)[0], list(other)[1]);
    return fingerprint(other) != fingerprint(schedule);
  };
  CHECK(exchanged([](Schedule & s) -> auto& { return s.works; }));
  CHECK(exchanged([](Schedule & s) -> auto& { return s.tasks; }));
  CHECK(exchanged([](Schedule & s) -> auto& { return s.after; }));
  CHECK(exchanged([](Schedule & s) -> auto& { return s.buckets; }));
  CHECK(exchanged([](Schedule & s) -> auto& { return s.buckets[0].parameters; }));
}

TEST_CASE("what moves from one list to the next changes the fingerprint", "[model][fingerprint]") {
  Schedule left, right;
  left.passes = {{0, 0}, {}, {}};
  right.passes = {{0}, {0}, {}};
  CHECK(fingerprint(left) != fingerprint(right));
}

TEST_CASE("the fingerprint is the same on every machine", "[model][fingerprint]") {
  // FNV-1a of eight bytes each, by its definition, of a schedule of nothing: nine lists of no
  // length (the passes are three), seven numbers, a text of no length and one number more.
  std::uint64_t hash = 0xCBF29CE484222325u;
  const auto add = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte)
      hash = (hash ^ ((value >> (8 * byte)) & 0xFF)) * 0x100000001B3u;
  };
  for (int list = 0; list < 5 + 3 + 1; ++list) add(0);
  for (const std::uint64_t number : {1, 0, 1, 0, 0, 0, 1}) add(number);  // ranks, at once, rounds
  for (int rest = 0; rest < 2; ++rest) add(0);                           // of the comm hook
  CHECK(fingerprint(Schedule{}) == hash);
}

TEST_CASE("a fingerprint is written in sixteen hexadecimal digits", "[model][fingerprint]") {
  CHECK(fingerprint_text(0) == "0000000000000000");
  CHECK(fingerprint_text(0xFEDCBA9876543210u) == "fedcba9876543210");
}
