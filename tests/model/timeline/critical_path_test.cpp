#include <tuple>

#include <catch2/catch.hpp>

#include "model/timeline/metrics.hpp"
#include "tests/model/timeline/of_rows.hpp"
#include "tests/model/timeline/timelines.hpp"

using namespace ddpsim;
using namespace ddpsim::timelines;
using namespace std::chrono_literals;

namespace {

using Piece = std::tuple<std::uint32_t, bool, Duration>;  // task, on the host, length

/// The path without its pieces of no length.
std::vector<Piece> path_of(const History& history) {
  std::vector<Piece> path;
  for (const CriticalPiece& piece : critical_path(history.schedule, history.timeline))
    if (piece.length > Duration::zero()) path.emplace_back(piece.task, piece.on_host, piece.length);
  return path;
}

constexpr bool host = true, device = false;

Happened enqueued(Happened what, Duration issued, Duration done) {
  what.issued = issued;
  what.enqueued = done;
  return what;
}

}  // namespace

TEST_CASE("the path goes from kernel to all-reduce to what waits for it", "[model][metrics]") {
  // The second kernel is beside the all-reduce and shorter.
  const History history({ran(Operation::backward, 0ms, 10ms),
                         reduced(0, 10ms, 40ms, {0}),
                         ran(Operation::backward, 10ms, 20ms),
                         {Operation::wait, StepStream::compute, 0ms, 0ms, 40ms, 40ms, {1}, 0, 0},
                         ran(Operation::optimizer, 40ms, 45ms)},
                        1);
  CHECK(path_of(history) ==
        std::vector<Piece>{{0, device, 10ms}, {1, device, 30ms}, {4, device, 5ms}});
}

TEST_CASE("an all-reduce behind another one waits for it, not for its gradient",
          "[model][metrics]") {
  const History history({ran(Operation::backward, 0ms, 10ms), reduced(0, 10ms, 40ms, {0}),
                         ran(Operation::backward, 10ms, 20ms), reduced(1, 40ms, 55ms, {2})},
                        2);
  CHECK(path_of(history) ==
        std::vector<Piece>{{0, device, 10ms}, {1, device, 30ms}, {3, device, 15ms}});
}

TEST_CASE("a path on the host counts what it spends enqueueing", "[model][metrics]") {
  // Each launch takes 3 ms, each kernel 1: the device waits for the host.
  const History history({enqueued(ran(Operation::forward, 3ms, 4ms), 0ms, 3ms),
                         enqueued(ran(Operation::forward, 6ms, 7ms), 3ms, 6ms)});
  CHECK(path_of(history) == std::vector<Piece>{{0, host, 3ms}, {1, host, 3ms}, {1, device, 1ms}});
}

TEST_CASE("a run of launches counts the host up to the first", "[model][metrics]") {
  // Four launches in 4 ms: the run begins at 1 ms and lasts until 101.
  History history({enqueued(ran(Operation::forward, 1ms, 101ms), 0ms, 4ms)});
  history.work_of(0).launches = 4;
  history.detail_of(0).last_launch = 25ms;
  CHECK(path_of(history) == std::vector<Piece>{{0, host, 1ms}, {0, device, 100ms}});
}

TEST_CASE("a starved run counts the host up to the last launch", "[model][metrics]") {
  // The last launch is in at 40 ms and brings 5.
  History history({enqueued(ran(Operation::forward, 10ms, 45ms), 0ms, 40ms)});
  history.work_of(0).launches = 4;
  history.detail_of(0).last_launch = 5ms;
  CHECK(path_of(history) == std::vector<Piece>{{0, host, 40ms}, {0, device, 5ms}});
}

TEST_CASE("a host that stands still continues the path where it waited", "[model][metrics]") {
  Happened held{Operation::hook, StepStream::host, 10ms, 12ms, 10ms, 12ms, {0}, nobody, 0};
  const History history({ran(Operation::backward, 0ms, 10ms), held,
                         enqueued(ran(Operation::backward, 13ms, 20ms), 12ms, 13ms)});
  const std::vector<Piece> expected{
      {0, device, 10ms}, {1, host, 2ms}, {2, host, 1ms}, {2, device, 7ms}};
  CHECK(path_of(history) == expected);
}

TEST_CASE("kernels on the host's thread follow one another", "[model][metrics]") {
  const History history(
      {{Operation::forward, StepStream::host, 0ms, 1ms, 1ms, 6ms, {}, nobody, 0},
       {Operation::forward, StepStream::host, 6ms, 6ms, 6ms, 10ms, {}, nobody, 0}});
  // The second takes no time to enqueue: it begins where the first ends.
  std::vector<Piece> path = path_of(history);
  CHECK(path == std::vector<Piece>{{0, host, 1ms}, {0, device, 5ms}, {1, device, 4ms}});
}

TEST_CASE("waiting for another rank belongs to no piece", "[model][metrics]") {
  // Ready at 10, but the peers came at 25.
  const History history({ran(Operation::backward, 0ms, 10ms), reduced(0, 25ms, 30ms, {0})}, 1);
  Duration sum{};
  for (const auto& [task, on_host, length] : path_of(history)) sum += length;
  CHECK(sum == 15ms);  // of 30: the kernel and the all-reduce
  CHECK(path_of(history).back() == Piece{1, device, 5ms});
}

TEST_CASE("an empty step has no path", "[model][metrics]") {
  Times empty;
  empty.ranks.emplace_back();
  CHECK(critical_path(FlatStep{}, empty).empty());
}

TEST_CASE("an all-reduce follows the one of its own communicator that ends as it begins",
          "[model][metrics]") {
  // Bucket 0 has a communicator of its own; bucket 2 begins as bucket 1 ends.
  History history({ran(Operation::backward, 0ms, 10ms), reduced(0, 10ms, 30ms, {0}),
                   reduced(1, 10ms, 40ms, {0}), ran(Operation::backward, 10ms, 20ms),
                   reduced(2, 40ms, 55ms, {3})},
                  3);
  history.schedule.works[history.schedule.tasks[1].work].communicator = 1;
  CHECK(path_of(history) ==
        std::vector<Piece>{{0, device, 10ms}, {2, device, 30ms}, {4, device, 15ms}});
}
