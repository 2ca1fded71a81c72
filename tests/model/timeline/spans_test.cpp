#include "model/timeline/spans.hpp"

#include <tuple>

#include <catch2/catch.hpp>

#include "tests/model/timeline/of_rows.hpp"
#include "tests/model/timeline/timelines.hpp"

using namespace ddpsim;
using namespace ddpsim::timelines;
using namespace std::chrono_literals;

TEST_CASE("spans come by stream, then by start, without those of no length", "[model][timeline]") {
  Happened kernel = ran(Operation::backward, 3ms, 9ms, 1ms);
  kernel.enqueued = 3ms;
  Happened reduce = reduced(0, 9ms, 20ms, {0}, 4ms);
  reduce.enqueued = 5ms;
  const History history({kernel,
                         {Operation::hook, StepStream::host, 3ms, 4ms, 3ms, 4ms, {}, nobody, 0},
                         reduce,
                         {Operation::wait, StepStream::compute, 5ms, 5ms, 20ms, 20ms, {2}, 0, 0},
                         {Operation::forward, StepStream::host, 5ms, 6ms, 6ms, 8ms, {}, nobody, 0}},
                        1);
  const OfRows of(history.schedule, history.timeline);
  using Seen = std::tuple<std::string, std::uint32_t, Duration, Duration>;
  std::vector<Seen> seen;
  for (const Span& span : spans_of({of.job, of.times, 0}))
    seen.emplace_back(of.job.streams[span.stream].name, span.task, span.start.time_since_epoch(),
                      span.end.time_since_epoch());
  // Where the host's own thread works, enqueueing and work are one span.
  CHECK(seen == std::vector<Seen>{{"host", 0, 1ms, 3ms},
                                  {"host", 1, 3ms, 4ms},
                                  {"host", 2, 4ms, 5ms},
                                  {"host", 4, 5ms, 8ms},
                                  {"compute", 0, 3ms, 9ms},
                                  {"communication", 2, 9ms, 20ms}});
}

TEST_CASE("a stream is what stands on it", "[model][timeline]") {
  const History history({ran(Operation::backward, 0ms, 9ms, 0ms), reduced(0, 9ms, 20ms, {0}, 4ms)},
                        1);
  OfRows of(history.schedule, history.timeline);
  using Kinds = std::vector<StreamKind>;
  const auto kinds = [&] { return stream_kinds({of.job, of.times, 0}); };
  // Nothing stands on those behind communication.
  CHECK(kinds() == Kinds{StreamKind::host, StreamKind::compute, StreamKind::communication,
                         StreamKind::side, StreamKind::side, StreamKind::side});
  of.job.own.deeds[0].action = program::Move{};
  of.job.programs[0].tasks[0].stream = 4;
  CHECK(kinds()[4] == StreamKind::copies);
  of.job.own.deeds[1].action = program::Touch{};
  CHECK(kinds()[2] == StreamKind::side);
}

TEST_CASE("the host's wait before a task is no span of its own", "[model][timeline]") {
  Happened kernel = ran(Operation::backward, 3ms, 9ms, 1ms);
  kernel.enqueued = 2ms;
  const History history({ran(Operation::backward, 0ms, 1ms, 0ms),
                         {Operation::wait, StepStream::host, 1ms, 1ms, 1ms, 1ms, {0}},
                         kernel},
                        1);
  OfRows of(history.schedule, history.timeline);
  of.job.works[of.job.programs[0].tasks[1].work] = {};
  of.job.own.deeds[1].origin = {};
  const RankOfJob rank(of.job, of.times, 0);
  REQUIRE(rank.program.tasks.size() == 3);
  CHECK(rank.is_part_of_another(rank.program.tasks[1]));
  CHECK(rank.host_waits_before(2));
  CHECK_FALSE(rank.host_waits_before(1));
  for (const Span& span : spans_of(rank)) CHECK(span.task != 1);
}
