#include "backend/steal.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

/// What a machine of two processors says of itself.
class Stat {
 public:
  explicit Stat(int rank)
      : path(std::filesystem::temp_directory_path() /
             fmt::format("ddpsim-stat-{}-{}", getpid(), rank)) {
    stolen(0);
  }
  ~Stat() { std::filesystem::remove(path); }
  Stat(const Stat&) = delete;
  Stat& operator=(const Stat&) = delete;

  /// Of each processor, since it started.
  void stolen(int ticks) const {
    std::ofstream(path) << fmt::format(
        "cpu  100 0 20 900 5 0 1 {} 0 0\ncpu0 50 0 10 450 3 0 1 {} 0 0\ncpu1 50 0 10 450 2 0 0 {} "
        "0 0\nintr 7\n",
        2 * ticks, ticks, ticks);
  }

  const std::filesystem::path path;
};

/// How often each of two ranks measures, where one of them loses so many ticks a time.
std::array<int, 2> measured(const std::vector<int>& lost, std::chrono::milliseconds long_each) {
  std::array<int, 2> times{};
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            const Stat stat(rank.rank());
            int& count = times[static_cast<std::size_t>(rank.rank())];
            int ticks = 0;
            const int last = undisturbed(
                rank,
                [&] {
                  std::this_thread::sleep_for(long_each);
                  const auto each = static_cast<std::size_t>(count);
                  if (rank.rank() == 1 && each < lost.size()) stat.stolen(ticks += lost[each]);
                  return ++count;
                },
                stat.path.string());
            return last == count ? 0 : 1;
          }) == 0);
  return times;
}

}  // namespace

TEST_CASE("what is measured while processors are stolen is measured again, on all ranks",
          "[backend][steal]") {
  const auto all = [](int count) { return std::array{count, count}; };
  CHECK(measured({}, 60ms) == all(1));
  CHECK(measured({300}, 60ms) == all(2));
  CHECK(measured({300, 300}, 60ms) == all(3));
  CHECK(measured({300, 300, 300, 300}, 60ms) == all(3));  // enough is enough
  CHECK(measured({300}, 1ms) == all(1));                  // too short to tell
}

TEST_CASE("a system that does not say what was stolen had nothing stolen", "[backend][steal]") {
  const Stat stat(2);
  const Steal missing("/nowhere/stat");
  std::ofstream(stat.path) << "cpu  100 0 20\ncpu0 100 0 20\n";
  const Steal old(stat.path.string());
  std::this_thread::sleep_for(60ms);
  CHECK(missing.share() == 0);
  CHECK(old.share() == 0);
}

TEST_CASE("stolen time is a share of all processors' time", "[backend][steal]") {
  const Stat stat(3);
  const Steal steal(stat.path.string());
  std::this_thread::sleep_for(200ms);
  stat.stolen(10);  // 100 ms of each: at most half of what passed
  CHECK(steal.share() > 0.01);
  CHECK(steal.share() <= 0.5);
}

}  // namespace ddpsim
