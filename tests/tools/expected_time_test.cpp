#include "tools/sweep/expected_time.hpp"

#include <catch2/catch.hpp>

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

TEST_CASE("the rest of a sweep is expected to go on as it began", "[tools][sweep]") {
  // 100 points took 5 s, so 1900 take 95 s.
  CHECK(expected_rest(100, 1900, 5s) == 95s);
  CHECK(expected_rest(100, 0, 5s) == 0s);
  // Too little is known.
  CHECK(expected_rest(0, 1900, 5s) == 0s);
  CHECK(expected_rest(100, 1900, 900ms) == 0s);
}

TEST_CASE("an expected time is told roughly", "[tools][sweep]") {
  CHECK(about(1s) == "about 10 s");
  CHECK(about(41s) == "about 50 s");
  CHECK(about(90s) == "about 2 min");
  CHECK(about(45min) == "about 45 min");
  CHECK(about(90min) == "about 1.5 h");
}

}  // namespace
}  // namespace ddpsim
