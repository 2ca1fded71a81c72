#include "model/timeline/busy_overlap.hpp"

#include <catch2/catch.hpp>

#include "tests/model/timeline/of_rows.hpp"

namespace ddpsim {
namespace {

using std::chrono::microseconds;

Instant at_us(int time) {
  return Instant{} + microseconds{time};
}

/// A step of one rank; each task runs from and to these microseconds.
struct Made {
  FlatStep schedule;
  timelines::Times timeline{.ranks = {{}}};

  Made& add(Operation operation, StepStream stream, int start, int end, int divisor = 1) {
    FlatTask task;
    task.operation = operation;
    task.stream = stream;
    task.divisor = divisor;
    task.work = static_cast<std::uint32_t>(schedule.works.size());
    schedule.works.emplace_back().operation = operation;
    schedule.tasks.push_back(task);
    timeline.ranks[0].push_back({at_us(start), at_us(start), at_us(start), at_us(end)});
    return *this;
  }
  BusyOverlap overlap() const { return timelines::busy_overlap(schedule, timeline); }
};

TEST_CASE("communication beside kernels counts once, however many run",
          "[model][timeline][busy_overlap]") {
  Made made;
  // Kernels 0 - 40 and 60 - 70; collectives 30 - 50 and 45 - 65: 35 us in all, of which 30 - 40 and
  // 60 - 65 lie beside kernels.
  made.add(Operation::backward, StepStream::compute, 0, 40)
      .add(Operation::all_reduce, StepStream::communication, 30, 50)
      .add(Operation::all_reduce, StepStream::communication, 45, 65)
      .add(Operation::optimizer, StepStream::compute, 60, 70);
  CHECK(made.overlap().communicating == microseconds{35});
  CHECK(made.overlap().beside == microseconds{15});
  CHECK(made.overlap().ratio() == 15.0 / 35);
}

TEST_CASE("copies are no computation, unless they divide on the way",
          "[model][timeline][busy_overlap]") {
  Made made;
  // 0 - 100 us of communication; a plain copy 10 - 20, one that divides 30 - 50, one back 60 - 90.
  made.add(Operation::all_reduce, StepStream::communication, 0, 100)
      .add(Operation::copy_in, StepStream::compute, 10, 20)
      .add(Operation::copy_in, StepStream::compute, 30, 50, 8)
      .add(Operation::copy_out, StepStream::compute, 60, 90)
      .add(Operation::hook, StepStream::host, 0, 100);
  CHECK(made.overlap().communicating == microseconds{100});
  CHECK(made.overlap().beside == microseconds{20});
}

TEST_CASE("without communication nothing overlaps", "[model][timeline][busy_overlap]") {
  Made made;
  made.add(Operation::forward, StepStream::compute, 0, 10);
  CHECK(made.overlap().communicating == Duration{});
  CHECK(made.overlap().ratio() == 0);
}

}  // namespace
}  // namespace ddpsim
