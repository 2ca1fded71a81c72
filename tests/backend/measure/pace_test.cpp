#include "backend/measure/pace.hpp"

#include <set>

#include <catch2/catch.hpp>
#include <sched.h>

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

/// Of processors with these percentiles, in microseconds.
Pace of(const std::vector<std::array<int, 3>>& times) {
  Pace pace;
  for (const auto& [low, median, high] : times)
    pace.processors.push_back({static_cast<int>(pace.processors.size()),
                               std::chrono::microseconds{low}, std::chrono::microseconds{median},
                               std::chrono::microseconds{high}});
  return pace;
}

TEST_CASE("a pace is even up to a quarter", "[backend][pace]") {
  CHECK(of({{100, 110, 124}}).even());
  CHECK(of({{100, 110, 126}}).changes());
  CHECK(!of({{100, 110, 126}}).differs());
  CHECK(of({{100, 100, 100}, {124, 124, 124}}).even());
  CHECK(of({{100, 100, 100}, {126, 126, 126}}).differs());
  CHECK(!of({{100, 100, 100}, {126, 126, 126}}).changes());
  CHECK(of({{100, 110, 120}, {90, 100, 140}}).low() == std::chrono::microseconds{90});
  CHECK(of({{100, 110, 120}, {90, 100, 140}}).high() == std::chrono::microseconds{140});
}

TEST_CASE("every processor is kept at work for as long as was asked", "[backend][pace]") {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<double> watched;
  const Pace pace =
      measure_pace(milliseconds{500}, [&](double passed) { watched.push_back(passed); });
  CHECK(std::chrono::steady_clock::now() - begin >= milliseconds{500});
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof(all), &all) == 0);
  std::set<int> processors;
  for (const ProcessorPace& each : pace.processors) {
    CHECK(CPU_ISSET(each.processor, &all));
    processors.insert(each.processor);
    CHECK(each.low > Duration{});
    CHECK(each.low <= each.median);
    CHECK(each.median <= each.high);
  }
  CHECK(processors.size() == static_cast<std::size_t>(CPU_COUNT(&all)));
  REQUIRE(watched.size() >= 2);
  CHECK(std::is_sorted(watched.begin(), watched.end()));
  CHECK((watched.front() >= 0 && watched.back() <= 1));
  // This thread may use them all, as before.
  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof(after), &after) == 0);
  CHECK(CPU_EQUAL(&all, &after) != 0);
}

}  // namespace
}  // namespace ddpsim
