#include "backend/measure/steal.hpp"

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

/// What a machine says of its processors.
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

  /// Since it started, in hundredths of a second. Of what worked, all kinds have a part.
  void stolen(int ticks, int worked = 0) const {
    const int part = worked / 5;
    std::ofstream(path) << fmt::format("cpu  {0} {0} {0} 900 5 {0} {0} {1} 70 8\ncpu0 1 2 3\n",
                                       part, ticks);
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
}

TEST_CASE("a system that does not say what was stolen had nothing stolen", "[backend][steal]") {
  const Stat stat(2);
  const Steal missing("/nowhere/stat");
  std::ofstream(stat.path) << "cpu  100 0 20\ncpu0 100 0 20\n";
  const Steal old(stat.path.string());
  std::ofstream(stat.path) << "cpu  900 0 320\ncpu0 900 0 320\n";
  std::this_thread::sleep_for(60ms);
  CHECK(missing.share() == 0);
  CHECK(old.share() == 0);
}

TEST_CASE("stolen time is a share of the time in which processors had work", "[backend][steal]") {
  const Stat stat(3);
  const Steal steal(stat.path.string());
  std::this_thread::sleep_for(60ms);
  // Of many processors, of which most may be idle: far more than has passed.
  stat.stolen(10000, 30000);
  CHECK(steal.share() == Approx(0.25));
  stat.stolen(10000);
  CHECK(steal.share() == Approx(1));
}

TEST_CASE("where processors had little work, stolen time is a share of one processor's",
          "[backend][steal]") {
  const Stat stat(4);
  const auto begin = std::chrono::steady_clock::now();
  const Steal steal(stat.path.string());
  std::this_thread::sleep_for(200ms);
  stat.stolen(5, 5);  // 50 ms
  const double share = steal.share();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  CHECK(share <= 0.05 / 0.2);
  CHECK(share >= 0.05 / passed.count());
}

TEST_CASE("what is too short to tell had nothing stolen", "[backend][steal]") {
  const Stat stat(5);
  const auto begin = std::chrono::steady_clock::now();
  const Steal steal(stat.path.string());
  stat.stolen(300);
  const double share = steal.share();
  if (std::chrono::steady_clock::now() - begin < 50ms) CHECK(share == 0);  // or we were stopped
}

}  // namespace ddpsim
