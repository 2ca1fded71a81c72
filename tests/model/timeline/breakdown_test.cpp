#include "model/timeline/breakdown.hpp"

#include <catch2/catch.hpp>

#include "tests/model/timeline/of_rows.hpp"

using namespace ddpsim;
using namespace ddpsim::timelines;
using namespace std::chrono_literals;

namespace {

constexpr Instant at(Duration time) {
  return Instant{time};
}

/// A kernel on the host's thread from 0 to 10 ms, whose all-reduce is issued at 10, starts (the
/// other rank is late) at 14 and ends at 20; a kernel from 11 to 16 beside it, and one from 22 to
/// 25.
struct Example {
  FlatStep schedule;
  timelines::Times timeline;

  Example() {
    schedule.buckets.emplace_back();
    add(Operation::backward, StepStream::host, {at(0ms), at(0ms), at(0ms), at(10ms)});
    add(Operation::all_reduce, StepStream::communication, {at(10ms), at(10ms), at(14ms), at(20ms)});
    add(Operation::backward, StepStream::host, {at(11ms), at(11ms), at(11ms), at(16ms)});
    add(Operation::optimizer, StepStream::host, {at(22ms), at(22ms), at(22ms), at(25ms)});
    timeline.end = at(26ms);  // the other rank's
  }
  void add(Operation operation, StepStream stream, const TaskTimes& times) {
    FlatTask task;
    task.operation = operation;
    task.stream = stream;
    if (operation == Operation::all_reduce) task.bucket = 0;
    task.work = static_cast<std::uint32_t>(schedule.works.size());
    schedule.works.emplace_back().operation = operation;
    task.after_begin = static_cast<std::uint32_t>(schedule.after.size());
    schedule.tasks.push_back(task);
    if (timeline.ranks.empty()) timeline.ranks.emplace_back();
    timeline.ranks[0].push_back(times);
  }
};

}  // namespace

TEST_CASE("every instant of a step has one cause", "[model][breakdown]") {
  const Example example;
  const Breakdown parts = break_down(example.schedule, example.timeline);
  CHECK(parts.compute == 18ms);       // 0-10, 11-16, 22-25
  CHECK(parts.communication == 4ms);  // 16-20: before, a kernel ran beside it
  CHECK(parts.waiting == 1ms);        // 10-11: issued, the peer not there, no kernel
  CHECK(parts.launch == 3ms);         // 20-22, and 25-26 for the other rank
}

TEST_CASE("an all-reduce behind another waits for that one, not for a rank", "[model][breakdown]") {
  Example example;
  // Issued at 12, it can begin when the first has ended, and does.
  example.add(Operation::all_reduce, StepStream::communication,
              {at(12ms), at(12ms), at(20ms), at(21ms)});
  const Breakdown parts = break_down(example.schedule, example.timeline);
  CHECK(parts.waiting == 1ms);
  CHECK(parts.communication == 5ms);
  CHECK(parts.launch == 2ms);
}

TEST_CASE("nothing done is nothing but launch", "[model][breakdown]") {
  timelines::Times timeline;
  timeline.ranks.emplace_back();
  timeline.end = at(3ms);
  const Breakdown parts = break_down(FlatStep{}, timeline);
  CHECK(parts.compute + parts.communication + parts.waiting == 0ms);
  CHECK(parts.launch == 3ms);
}
