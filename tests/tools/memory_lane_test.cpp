#include "tools/picture/memory_lane.hpp"

#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/tools/program.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {
namespace {

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
    ++count;
  return count;
}

}  // namespace

TEST_CASE("memory along a step reaches its peak once, and leaves out what nobody would see",
          "[tools][picture][memory]") {
  const Comparison run(read_scenario(first_example), false);
  for (std::size_t s = 0; s < run.compared.size(); ++s) {
    const std::vector<ShownMemory> points = shown_memory(run.scenario, run.compared[s], 0);
    REQUIRE(points.size() > 2);
    CHECK(std::ranges::is_sorted(points, {}, &ShownMemory::at));
    CHECK(std::ranges::max_element(points, {}, &ShownMemory::sum)->sum() == run.memories[s].peak);
    // Parameters stay, and activations are gone in the end.
    CHECK(points.front().bytes[0] == points.back().bytes[0]);
    CHECK(points.back().bytes[4] == Bytes{});
    for (std::size_t i = 2; i + 1 < points.size(); ++i)
      CHECK(points[i].bytes != points[i - 1].bytes);
  }
}

TEST_CASE("each step's memory is drawn under its streams, as high as the one that takes the most",
          "[tools][picture][memory]") {
  const Comparison run(read_scenario(first_example), false);
  MemoryLanes lanes(run.scenario, run.named());
  double top = 100;
  Instant end{};
  for (std::size_t s = 0; s < run.compared.size(); ++s) {
    const double bottom = lanes.place(s, top);
    CHECK(bottom > top);
    top = bottom + 10;
    end = std::max(end, run.compared[s].times.end);
  }
  const std::string drawn = lanes.areas(Duration{1000}, end.time_since_epoch());
  CHECK(count_of(drawn, "<g class=\"memory\">") == run.compared.size());
  CHECK(count_of(drawn, "<title>memory: activations, at most ") == run.compared.size());
  CHECK(count_of(drawn, "<path") == 0);  // a page would take it away when it is zoomed
  // The highest of all reaches the top of its lane.
  const auto most = std::ranges::max_element(run.memories, {}, &StepMemory::peak);
  double of_most = 100;
  for (auto each = run.memories.begin(); each != most; ++each) of_most += 54;
  CHECK(count_of(drawn, "," + fmt::format("{:g} ", of_most)) > 0);
  CHECK(count_of(lanes.labels(90), ">memory</text>") == run.compared.size());
}

}  // namespace ddpsim
