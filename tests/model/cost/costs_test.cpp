#include "model/cost/costs.hpp"

#include <catch2/catch.hpp>

#include "tests/model/program/handmade.hpp"

using namespace ddpsim;
using namespace ddpsim::handmade;
using namespace std::chrono_literals;

namespace {

Work aside_work(std::int64_t traffic) {
  Work work = moved(Operation::cast, traffic);
  work.aside = true;
  return work;
}

/// A kernel, one aside, an all-reduce, the copies around one on the hosts, and a hook: each costs 1
/// us of host, 10 us of work, and ends 4 us after its last launch.
FlatStep one_of_each_kind(bool synchronous) {
  FlatStep schedule;
  add(schedule, moved(Operation::backward, 100), StepStream::compute);
  add(schedule, aside_work(100), synchronous ? StepStream::communication : StepStream::aside);
  add(schedule, sent(Operation::all_reduce, 100), StepStream::communication);
  add(schedule, sent(Operation::copy_to_host, 100), StepStream::to_host);
  add(schedule, sent(Operation::copy_to_device, 100), StepStream::to_device);
  add(schedule, sent(Operation::hook, 0), StepStream::host);
  return schedule;
}

Costs alike(const FlatStep& schedule) {
  Costs costs;
  costs.works.assign(
      schedule.works.size(),
      WorkCost{
          .host = 1us, .first_launch = 1us, .work = 10us, .last_launch = 4us, .launch_rate = 3});
  return costs;
}

}  // namespace

TEST_CASE("a slower rank computes longer, and communicates and launches as ever",
          "[model][costs]") {
  const bool synchronous = GENERATE(false, true);
  const FlatStep schedule = one_of_each_kind(synchronous);
  const Costs slow = slowed_down(schedule.works, synchronous, alike(schedule), 1.5);
  for (const FlatTask& task : schedule.tasks) {
    CAPTURE(synchronous, name_of(task.operation));
    // What comm hooks compute on a synchronous device is the communicating thread's.
    const bool computed = task.operation == Operation::backward ||
                          task.operation == Operation::hook ||
                          (task.operation == Operation::cast && !synchronous);
    CHECK(slow.works[task.work].work == (computed ? 15us : 10us));
    CHECK(slow.works[task.work].last_launch == (computed ? 6us : 4us));
    CHECK(slow.works[task.work].launch_rate == Approx(computed ? 2 : 3));
    CHECK(slow.works[task.work].host == 1us);
    CHECK(slow.works[task.work].first_launch == 1us);
  }
}

TEST_CASE("a slower rank's hand-over is everybody's", "[model][costs]") {
  const FlatStep schedule = one_of_each_kind(false);
  Costs costs = alike(schedule);
  for (WorkCost& cost : costs.works) cost.take_up = 3us;
  for (const WorkCost& cost : slowed_down(schedule.works, false, costs, 2).works)
    CHECK(cost.take_up == 3us);
}
