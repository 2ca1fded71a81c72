#include "model/cost/costs.hpp"

#include <catch2/catch.hpp>

#include "tests/model/schedule/handmade.hpp"

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
Schedule one_of_each_kind(bool synchronous) {
  Schedule schedule;
  schedule.synchronous = synchronous;
  add(schedule, moved(Operation::backward, 100), Stream::compute);
  add(schedule, aside_work(100), synchronous ? Stream::communication : Stream::aside);
  add(schedule, sent(Operation::all_reduce, 100), Stream::communication);
  add(schedule, sent(Operation::copy_to_host, 100), Stream::to_host);
  add(schedule, sent(Operation::copy_to_device, 100), Stream::to_device);
  add(schedule, sent(Operation::hook, 0), Stream::host);
  return schedule;
}

Costs alike(const Schedule& schedule) {
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
  const Schedule schedule = one_of_each_kind(synchronous);
  const Costs slow = slowed_down(schedule.works, synchronous, alike(schedule), 1.5);
  for (const Task& task : schedule.tasks) {
    CAPTURE(synchronous, name_of(task.operation));
    // What comm hooks compute on a synchronous device is the communicating thread's.
    const bool computed = task.operation == Operation::backward ||
                          task.operation == Operation::hook ||
                          (task.operation == Operation::cast && !synchronous);
    CHECK(slow.of(task).work == (computed ? 15us : 10us));
    CHECK(slow.of(task).last_launch == (computed ? 6us : 4us));
    CHECK(slow.of(task).launch_rate == Approx(computed ? 2 : 3));
    CHECK(slow.of(task).host == 1us);
    CHECK(slow.of(task).first_launch == 1us);
  }
}

TEST_CASE("a slower rank's hand-over is everybody's", "[model][costs]") {
  const Schedule schedule = one_of_each_kind(false);
  Costs costs = alike(schedule);
  for (WorkCost& cost : costs.works) cost.take_up = 3us;
  for (const WorkCost& cost : slowed_down(schedule.works, false, costs, 2).works)
    CHECK(cost.take_up == 3us);
}

TEST_CASE("all tasks together take what host and streams spend on each", "[model][costs]") {
  Schedule schedule = one_of_each_kind(false);
  const Costs costs = alike(schedule);
  CHECK(total_seconds(schedule, costs) == Approx(6 * 11e-6));
  add(schedule, moved(Operation::backward, 100), Stream::compute);  // the same work once more
  CHECK(schedule.works.size() == 6);
  CHECK(total_seconds(schedule, costs) == Approx(7 * 11e-6));
  CHECK(total_seconds(Schedule{}, Costs{}) == 0);
}
