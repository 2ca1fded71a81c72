#include "model/timeline/timeline.hpp"

#include <tuple>

#include <catch2/catch.hpp>

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
                         {Operation::hook, Stream::host, 3ms, 4ms, 3ms, 4ms, {}, nobody, 0},
                         reduce,
                         {Operation::wait, Stream::compute, 5ms, 5ms, 20ms, 20ms, {2}, 0, 0},
                         {Operation::forward, Stream::host, 5ms, 6ms, 6ms, 8ms, {}, nobody, 0}},
                        1);
  using Seen = std::tuple<Stream, int, std::uint32_t, Duration, Duration>;
  std::vector<Seen> seen;
  for (const Span& span : spans_of(history.schedule, history.timeline.ranks[0], 7))
    seen.emplace_back(span.stream, span.rank, span.task, span.start.time_since_epoch(),
                      span.end.time_since_epoch());
  // Of work on the host's own thread, enqueueing and work are one span.
  CHECK(seen == std::vector<Seen>{{Stream::host, 7, 0, 1ms, 3ms},
                                  {Stream::host, 7, 1, 3ms, 4ms},
                                  {Stream::host, 7, 2, 4ms, 5ms},
                                  {Stream::host, 7, 4, 5ms, 8ms},
                                  {Stream::compute, 7, 0, 3ms, 9ms},
                                  {Stream::communication, 7, 2, 9ms, 20ms}});
}
