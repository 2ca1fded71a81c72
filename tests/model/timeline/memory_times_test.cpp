#include "model/timeline/memory_times.hpp"

#include <catch2/catch.hpp>

using namespace ddpsim;
using namespace std::chrono_literals;
using program::Holds;

TEST_CASE("memory comes when the host issues the task, whenever the device runs it",
          "[model][timeline][memory]") {
  // The host issues two kernels at 1 and 2 us, which run from 10 and from 20 us on.
  const std::vector<TaskTimes> times{{Instant{1us}, Instant{2us}, Instant{10us}, Instant{20us}},
                                     {Instant{2us}, Instant{3us}, Instant{20us}, Instant{45us}}};
  program::MemoryAlong memory;
  memory.begin[Holds::parameter] = Bytes{5};
  memory.changes = {{0, Holds::activation, Bytes{7}},
                    {1, Holds::activation, Bytes{} - Bytes{7}},
                    {1, Holds::gradient, Bytes{3}},
                    {2, Holds::gradient, Bytes{} - Bytes{3}}};
  const std::vector<MemoryPoint> points = memory_over_time(memory, times);
  REQUIRE(points.size() == 5);
  CHECK(points[0].at == Instant{});
  CHECK(points[0].bytes.sum() == Bytes{5});
  CHECK(points[1].at == Instant{1us});
  CHECK(points[1].bytes.sum() == Bytes{12});
  CHECK(points[2].at == Instant{2us});
  CHECK(points[2].bytes.sum() == Bytes{5});
  CHECK(points[3].at == Instant{2us});
  CHECK(points[3].bytes[Holds::gradient] == Bytes{3});
  // Behind the last task: when all has ended.
  CHECK(points[4].at == Instant{45us});
  CHECK(points[4].bytes.sum() == Bytes{5});
}
