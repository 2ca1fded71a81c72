#include "model/timeline/metrics.hpp"

#include <string>

#include <catch2/catch.hpp>

#include "tests/model/timeline/of_rows.hpp"
#include "tests/model/timeline/timelines.hpp"

using namespace ddpsim;
using namespace ddpsim::timelines;
using namespace std::chrono_literals;

namespace {

StepMetrics measured(const History& history) {
  return measure(history.schedule, history.timeline);
}

/// forward [1, 11] with a pause, backward from 12 to 42 with one copy in, optimizer [60, 65]; the
/// first bucket's all-reduce [22, 40] beside backward, the second's [42, 55] alone; issued at 21
/// and 41.
History one_step() {
  Happened copy = ran(Operation::copy_in, 20ms, 22ms);
  copy.bucket = 0;
  return History({ran(Operation::forward, 1ms, 5ms), ran(Operation::forward, 7ms, 11ms),
                  ran(Operation::backward, 12ms, 20ms), copy, reduced(0, 22ms, 40ms, {3}, 21ms),
                  ran(Operation::backward, 22ms, 42ms), reduced(1, 42ms, 55ms, {5}, 41ms),
                  ran(Operation::divide, 55ms, 60ms), ran(Operation::optimizer, 60ms, 65ms)},
                 2);
}

}  // namespace

TEST_CASE("passes last from their first kernel to their last", "[model][metrics]") {
  const StepMetrics metrics = measured(one_step());
  CHECK(metrics.step == 65ms);
  CHECK(metrics.forward == 10ms);   // 1 to 11, pause included
  CHECK(metrics.backward == 31ms);  // from the loss at 11 to 42, late start and copy included
  CHECK(metrics.optimizer == 5ms);  // 60 to 65
}

TEST_CASE("communication adds up every collective", "[model][metrics]") {
  const StepMetrics metrics = measured(one_step());
  CHECK(metrics.communication == 18ms + 13ms);
  CHECK(metrics.collectives == 2);
  CHECK(metrics.wire == Bytes{2000});
}

TEST_CASE("copies to the host and back are communication", "[model][metrics]") {
  // Backward to 10, its copy to 13, the all-reduce to 18, the copy back to 21.
  const StepMetrics metrics = measured(History(
      {ran(Operation::backward, 0ms, 10ms), copied(Operation::copy_to_host, 0, 10ms, 13ms, 0),
       reduced(0, 13ms, 18ms, {1}), copied(Operation::copy_to_device, 0, 18ms, 21ms, 2)},
      1));
  CHECK(metrics.communication == 11ms);
  CHECK(metrics.collectives == 1);
  CHECK(metrics.wire == Bytes{1000});
  CHECK(metrics.buckets[0].exposed == 11ms);
  CHECK(metrics.buckets[0].host_copies == 6ms);
  CHECK(metrics.bound == Bound::bandwidth);  // 11 of 21 ms; the copies alone would not decide

  // A copy beside another bucket's all-reduce is exposed by that one; of two micro-batches the last
  // counts.
  std::vector<Happened> two{
      ran(Operation::backward, 0ms, 10ms), copied(Operation::copy_to_host, 0, 10ms, 12ms, 0),
      reduced(0, 12ms, 20ms, {1}), copied(Operation::copy_to_host, 1, 12ms, 15ms, 0),
      reduced(1, 20ms, 22ms, {3})};
  const StepMetrics beside = measured(History(two, 2));
  CHECK(beside.buckets[0].host_copies == 2ms);
  CHECK(beside.buckets[1].host_copies == 0ms);
  CHECK(beside.communication == 12ms);
  for (std::size_t i = 3; i < 5; ++i) {
    two[i].bucket = 0;
    two[i].micro_batch = 1;
  }
  const StepMetrics again = measured(History(two, 1));
  CHECK(again.buckets[0].host_copies == 0ms);
  CHECK(again.buckets[0].exposed == 2ms);
}

TEST_CASE("broadcasts of buffers are communication, what the network sends itself is not",
          "[model][metrics]") {
  Happened buffers = reduced(nobody, 0ms, 2ms), own = reduced(nobody, 4ms, 5ms);
  buffers.operation = Operation::broadcast;
  History history({buffers, ran(Operation::forward, 2ms, 4ms), own,
                   ran(Operation::backward, 5ms, 10ms), reduced(0, 10ms, 13ms, {3})},
                  1);
  history.work_of(0).message = Message::buffers;
  history.work_of(2).message = Message::own;
  const StepMetrics metrics = measured(history);
  CHECK(metrics.communication == 2ms + 3ms);
  CHECK(metrics.collectives == 2);
}

TEST_CASE("a bucket is exposed while the compute stream stands still", "[model][metrics]") {
  const StepMetrics metrics = measured(one_step());
  REQUIRE(metrics.buckets.size() == 2);
  CHECK(metrics.buckets[0].start == Instant{22ms});
  CHECK(metrics.buckets[0].end == Instant{40ms});
  CHECK(metrics.buckets[0].exposed == 0ms);  // 22 to 42 is one kernel
  CHECK(metrics.buckets[1].start == Instant{42ms});
  CHECK(metrics.buckets[1].end == Instant{55ms});
  CHECK(metrics.buckets[1].exposed == 13ms);  // nothing runs from 42 to 55

  // Kernels [0, 4], [6, 9] and [9, 10] beside an all-reduce [2, 12]: still from 4 to 6 and 10
  // to 12.
  const StepMetrics patchy =
      measured(History({ran(Operation::backward, 0ms, 4ms), ran(Operation::backward, 6ms, 9ms),
                        ran(Operation::backward, 9ms, 10ms), reduced(0, 2ms, 12ms)},
                       1));
  CHECK(patchy.buckets[0].exposed == 4ms);
}

TEST_CASE("a bucket is ready when its last gradient is in place", "[model][metrics]") {
  const StepMetrics metrics = measured(one_step());
  CHECK(metrics.buckets[0].ready == Instant{22ms});  // its copy in
  CHECK(metrics.buckets[1].ready == Instant{42ms});  // the kernel

  // Bucket 1 is full at 10 but launched behind bucket 0, after the copy at 30.
  Happened behind = reduced(1, 50ms, 70ms, {1});
  behind.gradient = 0;
  const StepMetrics held =
      measured(History({ran(Operation::copy_in, 9ms, 10ms), ran(Operation::copy_in, 29ms, 30ms),
                        reduced(0, 30ms, 50ms, {1}), behind},
                       2));
  CHECK(held.buckets[0].ready == Instant{30ms});
  CHECK(held.buckets[1].ready == Instant{10ms});
}

TEST_CASE("a bucket with nothing to wait for is ready when it is issued", "[model][metrics]") {
  const StepMetrics metrics = measured(History({reduced(0, 5ms, 9ms, {}, 4ms)}, 1));
  CHECK(metrics.buckets[0].ready == Instant{4ms});
}

TEST_CASE("passes of several micro-batches add up and the last all-reduce of a bucket counts",
          "[model][metrics]") {
  Happened forward = ran(Operation::forward, 30ms, 34ms),
           backward = ran(Operation::backward, 35ms, 50ms);
  Happened accumulate = ran(Operation::accumulate, 50ms, 52ms),
           reduce = reduced(0, 52ms, 60ms, {5});
  for (Happened* each : {&forward, &backward, &accumulate, &reduce}) each->micro_batch = 1;
  const StepMetrics metrics =
      measured(History({ran(Operation::forward, 0ms, 4ms), ran(Operation::backward, 4ms, 20ms),
                        reduced(0, 20ms, 30ms, {1}), forward, backward, accumulate, reduce},
                       1));
  CHECK(metrics.forward == 4ms + 4ms);
  CHECK(metrics.backward == 16ms + 18ms);  // 4 to 20, 34 to 52: accumulation included
  CHECK(metrics.communication == 10ms + 8ms);
  CHECK(metrics.collectives == 2);
  CHECK(metrics.buckets[0].start == Instant{52ms});
  CHECK(metrics.buckets[0].ready == Instant{52ms});
}

TEST_CASE("without a forward pass backward begins with the step", "[model][metrics]") {
  Happened later = ran(Operation::backward, 12ms, 20ms);
  later.micro_batch = 1;
  const StepMetrics metrics = measured(History({ran(Operation::backward, 2ms, 10ms), later}));
  CHECK(metrics.forward == 0ms);
  CHECK(metrics.backward == 10ms + 10ms);  // 0 to 10, and from there to 20
}

TEST_CASE("exposed communication is what a step lasts longer than without any",
          "[model][metrics]") {
  StepMetrics step, none;
  step.step = 111ms;
  step.communication = 80ms;
  none.step = 55ms;
  CHECK(exposed(step, none) == 56ms);
  CHECK(overlap_ratio(step, none) == Approx(1 - 56.0 / 80));
  step.step = 55ms;
  CHECK(overlap_ratio(step, none) == 1);
  step.step = 200ms;  // interference and copies cost more than the communication itself
  CHECK(overlap_ratio(step, none) == 0);
  CHECK(overlap_ratio(none, none) == 1);  // nothing is communicated
}

TEST_CASE("a step is bound by what most of its critical path is", "[model][metrics]") {
  const auto bound = [](Duration host, Duration compute, Duration reduce, Duration latency) {
    Happened kernel = ran(Operation::backward, host, host + compute);
    kernel.enqueued = host;
    const Duration sent = host + compute;
    History history({kernel, reduced(0, sent, sent + reduce, {0}, host)}, 1);
    for (TaskDetail& detail : history.timeline.details) detail.latency = latency;
    return name_of(measured(history).bound);
  };
  CHECK(bound(1ms, 10ms, 8ms, 4ms) == "compute");
  CHECK(bound(1ms, 3ms, 8ms, 2ms) == "bandwidth");  // 6 of 8 ms move bytes
  CHECK(bound(1ms, 3ms, 8ms, 6ms) == "latency");
  CHECK(bound(9ms, 3ms, 8ms, 4ms) == "launch");
}

TEST_CASE("what collectives make kernels take longer is interference, and filling is bandwidth",
          "[model][metrics]") {
  const auto bound = [](Duration alone, Duration filling) {
    Happened kernel = ran(Operation::backward, 0ms, 10ms);
    History history({kernel, reduced(0, 10ms, 17ms, {0})}, 1);
    history.detail_of(0).alone = alone;
    history.detail_of(1).latency = 6ms;
    history.detail_of(1).filling = filling;
    return name_of(measured(history).bound);
  };
  CHECK(bound(10ms, 0ms) == "compute");
  CHECK(bound(2ms, 0ms) == "interference");  // 8 of 10 ms
  CHECK(bound(5ms, 0ms) == "latency");       // 6 of 7 ms
  CHECK(bound(5ms, 5ms) == "bandwidth");     // 6 of 7 ms, of which 5 fill the pipeline
  CHECK(bound(20ms, 0ms) == "compute");      // it was shorter than predicted
}

TEST_CASE("a step held up by a broadcast of buffers is bound by latency", "[model][metrics]") {
  Happened broadcast = reduced(nobody, 0ms, 5ms), kernel = ran(Operation::forward, 5ms, 8ms);
  broadcast.operation = Operation::broadcast;
  kernel.after = {0};
  History history({broadcast, kernel});
  history.work_of(0).message = Message::buffers;
  CHECK(name_of(measured(history).bound) == "latency");
}
