#include "model/timeline/why.hpp"

#include <numeric>

#include <catch2/catch.hpp>

#include "tests/model/timeline/of_rows.hpp"
#include "tests/model/timeline/timelines.hpp"

using namespace ddpsim;
using namespace ddpsim::timelines;
using namespace std::chrono_literals;

namespace {

std::vector<ExposedBucket> why(const History& history) {
  return why_exposed(history.schedule, history.timeline,
                     measure(history.schedule, history.timeline));
}

/// What each cause accounts for, in the order of all_causes.
using Shares = std::array<Duration, all_causes.size()>;

}  // namespace

TEST_CASE("a bucket that began with its gradients is exposed by its own length", "[model][why]") {
  // Backward until 10, then nothing hides 10 to 13.
  const History history({ran(Operation::backward, 0ms, 10ms), reduced(0, 10ms, 13ms, {0})}, 1);
  const auto buckets = why(history);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].cause == Cause::gradients);
  CHECK(buckets[0].times.exposed == 3ms);
  CHECK(buckets[0].exposed_by == Shares{3ms, 0ms, 0ms, 0ms, 0ms});
}

TEST_CASE("copies to the host and back expose a bucket, and so does the wait for them",
          "[model][why]") {
  // Kernels until 14; ready at 10, its copy until 13, its all-reduce until 18, the copy back until
  // 21. Begun at 10, the all-reduce would have ended at 15: 1 ms exposed of its 4.
  const History history(
      {ran(Operation::backward, 0ms, 10ms), copied(Operation::copy_to_host, 0, 10ms, 13ms, 0),
       reduced(0, 13ms, 18ms, {1}), ran(Operation::backward, 10ms, 14ms),
       copied(Operation::copy_to_device, 0, 18ms, 21ms, 2)},
      1);
  History ready = history;
  ready.schedule.tasks[2].gradient = 0;
  const auto buckets = why(ready);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].times.exposed == 7ms);
  CHECK(buckets[0].by(Cause::gradients) == 1ms);
  CHECK(buckets[0].by(Cause::host_copies) == 6ms);
  CHECK(buckets[0].cause == Cause::host_copies);
}

TEST_CASE("a hidden bucket needs no reason", "[model][why]") {
  const History history({ran(Operation::backward, 0ms, 4ms), ran(Operation::backward, 4ms, 10ms),
                         reduced(0, 4ms, 9ms, {0})},
                        1);
  CHECK(why(history).empty());
}

TEST_CASE("a bucket that waited for the collective before it", "[model][why]") {
  // Ready at 10, the other until 13, then 2 until 15: the 3 of waiting account for all 2 exposed.
  const History history({ran(Operation::backward, 0ms, 8ms), reduced(0, 8ms, 13ms, {0}),
                         ran(Operation::backward, 8ms, 10ms), reduced(1, 13ms, 15ms, {2})},
                        2);
  const auto buckets = why(history);
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].cause == Cause::gradients);
  CHECK(buckets[0].times.exposed == 3ms);
  CHECK(buckets[1].bucket == 1);
  CHECK(buckets[1].previous == Instant{13ms});
  CHECK(buckets[1].cause == Cause::previous);
  CHECK(buckets[1].exposed_by == Shares{0ms, 0ms, 2ms, 0ms, 0ms});
}

TEST_CASE("a bucket that waited for its turn", "[model][why]") {
  // Ready at 4, but called only after what ended at 10.
  History history({ran(Operation::backward, 0ms, 4ms), ran(Operation::backward, 4ms, 10ms),
                   reduced(0, 10ms, 13ms, {1})},
                  1);
  history.schedule.tasks[2].gradient = 0;
  const auto buckets = why(history);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].called == Instant{10ms});
  CHECK(buckets[0].cause == Cause::turn);
  CHECK(buckets[0].exposed_by == Shares{0ms, 3ms, 0ms, 0ms, 0ms});
}

TEST_CASE("a bucket that the host launched late", "[model][why]") {
  // Ready at 10, issued at 11; enqueueing takes 2 and the handover 1: it begins at 14.
  std::vector<Happened> all{ran(Operation::backward, 0ms, 10ms), reduced(0, 14ms, 20ms, {0}, 11ms)};
  all[1].enqueued = 13ms;
  History history(all, 1);
  history.timeline.details.resize(history.schedule.works.size());
  history.timeline.details[history.schedule.tasks[1].work].take_up = 1ms;
  const auto buckets = why(history);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].launched == Instant{14ms});
  // Begun at 10 it would have ended 4 earlier: that is the launch's; the other 2 of its 6 are its
  // own.
  CHECK(buckets[0].exposed_by == Shares{2ms, 0ms, 0ms, 4ms, 0ms});
  CHECK(buckets[0].cause == Cause::launch);
}

TEST_CASE("the wait for the slowest rank exposes nothing that it would not have hidden",
          "[model][why]") {
  // Nothing is computed between 10 and 17: begun at 10 it would be exposed just as long.
  const History history({ran(Operation::backward, 0ms, 10ms), reduced(0, 14ms, 17ms, {0})}, 1);
  const auto buckets = why(history);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].cause == Cause::gradients);
  CHECK(buckets[0].exposed_by == Shares{3ms, 0ms, 0ms, 0ms, 0ms});
}

TEST_CASE("a slower rank takes the computation away that would have hidden a bucket",
          "[model][why]") {
  // From 11 to 14, of which kernels hide 1; from 10 to 13 they would have hidden 2.
  const History history({ran(Operation::backward, 0ms, 10ms), ran(Operation::backward, 10ms, 12ms),
                         reduced(0, 11ms, 14ms, {0})},
                        1);
  const auto buckets = why(history);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].exposed_by == Shares{1ms, 0ms, 0ms, 0ms, 1ms});
}

TEST_CASE("waiting goes to its causes from the latest back, and the rest to the gradients",
          "[model][why]") {
  // The example of why.hpp: ready and called at 10, previous end at 13, launched at 14, start at
  // 16; the compute stream stands still from 15 on, the collective ends at 21: 5 exposed.
  std::vector<Happened> all{ran(Operation::backward, 0ms, 10ms), reduced(0, 2ms, 13ms),
                            reduced(1, 16ms, 21ms, {0}, 13ms),
                            ran(Operation::optimizer, 10ms, 15ms)};
  all[2].enqueued = 14ms;
  const auto buckets = why(History(all, 2));
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].exposed_by == Shares{0ms, 0ms, 3ms, 1ms, 1ms});
  CHECK(buckets[0].cause == Cause::previous);
}

TEST_CASE("causes before the gradients were ready count for nothing", "[model][why]") {
  // The previous collective ended at 9, the launch was done at 3: all before 10.
  std::vector<Happened> all{ran(Operation::backward, 0ms, 10ms), reduced(0, 2ms, 9ms),
                            reduced(1, 11ms, 15ms, {0}, 3ms)};
  const auto buckets = why(History(all, 2));
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].exposed_by == Shares{4ms, 0ms, 0ms, 0ms, 0ms});
}

TEST_CASE("of several micro-batches the last all-reduce of a bucket is explained", "[model][why]") {
  std::vector<Happened> all{ran(Operation::backward, 0ms, 10ms), reduced(0, 10ms, 13ms, {0}),
                            ran(Operation::backward, 13ms, 20ms), reduced(0, 20ms, 24ms, {2})};
  all[2].micro_batch = all[3].micro_batch = 1;
  const auto buckets = why(History(all, 1));
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].previous == Instant{13ms});
  CHECK(buckets[0].exposed_by == Shares{4ms, 0ms, 0ms, 0ms, 0ms});
}

TEST_CASE(
    "where several collectives run at a time, the last to end before a bucket began delayed it",
    "[model][why]") {
  // Two at a time: buckets 0 and 1 until 13 and 12. Bucket 2, ready at 9, begins at 13.
  History history(
      {ran(Operation::backward, 0ms, 8ms), reduced(0, 8ms, 13ms, {0}), reduced(1, 8ms, 12ms, {0}),
       ran(Operation::backward, 8ms, 9ms), reduced(2, 13ms, 15ms, {3})},
      3);
  history.schedule.collectives_at_once = 2;
  CHECK(why(history).back().previous == Instant{13ms});
  CHECK(why(history).back().cause == Cause::previous);
  // One that ends later than bucket 2 begins has not delayed it.
  history.timeline.ranks[0][1].end = Instant{14ms};
  CHECK(why(history).back().previous == Instant{12ms});
  // Nor has a collective of another communicator.
  history.schedule.works[history.schedule.tasks[4].work].communicator = 1;
  CHECK(why(history).back().previous == Instant{});
}

namespace {

/// Of ZeRO's hook: backward until 10, an all-reduce from 4 to 6, the update from 10 to 12, and its
/// broadcast from 12 to 15.
History updated_and_broadcast() {
  History history({ran(Operation::backward, 0ms, 4ms), ran(Operation::backward, 4ms, 10ms),
                   reduced(0, 4ms, 6ms, {0}), ran(Operation::optimizer, 10ms, 12ms),
                   reduced(0, 12ms, 15ms, {3})},
                  1);
  history.schedule.tasks[2].hook_step = "reduce";
  history.schedule.tasks[3].hook_step = "update";
  history.schedule.tasks[3].bucket = 0;
  history.schedule.tasks[4].hook_step = "send parameters";
  return history;
}

}  // namespace

TEST_CASE("a broadcast behind an update is exposed by the hook, and told with its own instants",
          "[model][why]") {
  const auto buckets = why(updated_and_broadcast());
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].collectives == 2);
  CHECK(buckets[0].times.ready == Instant{4ms});
  CHECK(buckets[0].called == Instant{12ms});
  CHECK(buckets[0].previous == Instant{6ms});
  CHECK(buckets[0].times.start == Instant{12ms});
  CHECK(buckets[0].times.end == Instant{15ms});
  CHECK(buckets[0].times.exposed == 3ms);
  CHECK(buckets[0].cause == Cause::hook);
  CHECK(buckets[0].exposed_by == Shares{0ms, 0ms, 0ms, 0ms, 0ms, 0ms, 3ms});
}

TEST_CASE("each collective of a hook is explained by itself", "[model][why]") {
  // Backward ends at 9, and with it the all-reduce, ready at 4, is called: until 10 it is exposed,
  // by its turn. Then the update until 12, and the broadcast until 15.
  History history = updated_and_broadcast();
  auto& times = history.timeline.ranks[0];
  times[1].end = Instant{9ms};
  times[2].start = Instant{9ms};
  times[2].end = Instant{10ms};
  history.schedule.after[history.schedule.tasks[2].after_begin] = 1;
  const auto buckets = why(history);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].times.exposed == 4ms);
  CHECK(buckets[0].times.start == Instant{12ms});
  CHECK(buckets[0].exposed_by == Shares{0ms, 1ms, 0ms, 0ms, 0ms, 0ms, 3ms});
}

TEST_CASE("a broadcast waits for the update of its owner on another rank", "[model][why]") {
  // This rank updates nothing; the owner's update ends at 12.
  History history = updated_and_broadcast();
  history.schedule.tasks[4].root = 1;
  history.schedule.tasks[4].operation = Operation::broadcast;
  history.timeline.ranks.push_back(history.timeline.ranks[0]);
  history.timeline.ranks[0][3].end = Instant{10ms};
  const auto buckets = why(history);
  REQUIRE(buckets.size() == 1);
  CHECK(buckets[0].called == Instant{12ms});
  CHECK(buckets[0].exposed_by == Shares{0ms, 0ms, 0ms, 0ms, 0ms, 0ms, 3ms});
}

TEST_CASE("a rank waits for the last to arrive, exposed or not", "[model][why]") {
  // This rank's gradients are there at 4 and 10, the other's at 7 and 10; both all-reduces begin
  // with the later, and behind the first computation goes on.
  History history({ran(Operation::backward, 0ms, 4ms), ran(Operation::backward, 4ms, 10ms),
                   reduced(0, 7ms, 9ms, {0}), reduced(1, 10ms, 12ms, {1})},
                  2);
  std::vector<TaskTimes> other = history.timeline.ranks[0];
  other[0].end = other[1].start = Instant{7ms};
  history.timeline.ranks.push_back(other);
  const StepMetrics metrics = measure(history.schedule, history.timeline);
  REQUIRE(metrics.buckets[0].exposed == 0ms);
  const auto waits = waits_for_ranks(history.schedule, history.timeline, metrics);
  REQUIRE(waits.size() == 2);
  CHECK(waits[0].rank == 1);
  CHECK(waits[0].waited == 3ms);
  CHECK(waits[1].rank == 0);
  CHECK(waits[1].waited == 0ms);
  // The other rank waits for nobody.
  for (const WaitForRank& wait : waits_for_ranks(
           history.schedule, history.timeline, measure(history.schedule, history.timeline, 1), 1)) {
    CHECK(wait.rank == 1);
    CHECK(wait.waited == 0ms);
  }
}
