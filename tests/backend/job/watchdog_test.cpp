// Who is gone, who is silent, and who is only slow.
#include "backend/job/watchdog.hpp"

#include <future>

#include <catch2/catch.hpp>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ddpsim {
namespace {

using namespace std::chrono_literals;
using Word = PulseLine::Word;

constexpr std::chrono::milliseconds timeout{400};

/// A rank's watchdog, and the other end of its only line in the test's hands.
struct Watched {
  int sockets[2]{-1, -1};
  std::shared_ptr<std::atomic<std::uint64_t>> moved =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  std::atomic<int> disconnected{0};
  std::optional<PulseLine> other;
  std::optional<Watchdog> watchdog;

  explicit Watched(int rank = 0) {
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    std::vector<PulseLine> lines;
    lines.emplace_back(1 - rank, sockets[0]);
    other.emplace(rank, sockets[1]);
    watchdog.emplace(Watchdog::Options{rank, timeout, false, [this] { ++disconnected; }},
                     std::move(lines), moved);
  }
  void alive(std::chrono::nanoseconds lacked = 0ns) {
    other->say({Word::alive, other->other(), lacked.count()});
  }
  /// The reason, once there is one; empty: none after a long while.
  std::string reason_in_time() {
    for (int look = 0; look < 3000 && watchdog->reason().empty(); ++look)
      std::this_thread::sleep_for(10ms);
    return watchdog->reason();
  }
};

}  // namespace

TEST_CASE("a rank whose line breaks without a word is gone", "[backend][watchdog]") {
  Watched rank;
  rank.other->hang_up();
  CHECK(rank.reason_in_time() == "lost another rank: rank 1 is gone");
  CHECK(rank.disconnected == 1);
}

TEST_CASE("a rank that said goodbye is missed by nobody", "[backend][watchdog]") {
  Watched rank;
  rank.other->say({Word::bye, 1, 0});
  rank.other->hang_up();
  std::this_thread::sleep_for(3 * timeout);
  CHECK(rank.watchdog->reason().empty());
  CHECK(rank.disconnected == 0);
}

TEST_CASE("a rank that gives no sign of life is told from one that is gone",
          "[backend][watchdog]") {
  Watched rank;
  CHECK(rank.reason_in_time() ==
        "rank 1 did not answer within 0.4 s: it is stopped or out of reach");
  CHECK(rank.disconnected == 1);
}

TEST_CASE("ranks hear from rank 0 who else is gone or silent", "[backend][watchdog]") {
  const auto [word, reason] = GENERATE(table<Word, std::string>(
      {{Word::gone, "lost another rank: rank 7 is gone"},
       {Word::silent, "rank 7 did not answer within 0.4 s: it is stopped or out of reach"}}));
  Watched rank(1);
  rank.other->say({word, 7, 0});
  CHECK(rank.reason_in_time() == reason);
}

TEST_CASE("a call in which nothing moves ends after the timeout, and not before",
          "[backend][watchdog]") {
  Watched rank;
  const auto wait = [&](bool moving, bool lacking, std::chrono::milliseconds time) {
    std::chrono::nanoseconds lacked{0};
    for (auto passed = 0ms; passed < time && rank.watchdog->reason().empty(); passed += 20ms) {
      if (moving) ++*rank.moved;
      if (lacking) lacked += 1s;  // far more than passes
      rank.alive(lacked);
      std::this_thread::sleep_for(20ms);
    }
    return rank.watchdog->reason();
  };
  CHECK(wait(false, false, 3 * timeout).empty());  // no call is under way
  const Watchdog::Waiting call(&*rank.watchdog);
  CHECK(wait(true, false, 3 * timeout).empty());
  CHECK(wait(false, true, 3 * timeout).empty());
  CHECK(wait(false, false, 30s) == "a rank did not answer within 0.4 s");
  CHECK(rank.disconnected == 1);
}

TEST_CASE("two watchdogs keep each other content, and part as friends", "[backend][watchdog]") {
  int sockets[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  const auto moved = std::make_shared<std::atomic<std::uint64_t>>(0);
  const auto watched = [&](int rank) {
    std::vector<PulseLine> lines;
    lines.emplace_back(1 - rank, sockets[rank]);
    return std::make_unique<Watchdog>(Watchdog::Options{rank, timeout, false, [] {}},
                                      std::move(lines), moved);
  };
  auto zero = watched(0), one = watched(1);
  std::this_thread::sleep_for(3 * timeout);
  CHECK(zero->reason().empty());
  CHECK(one->reason().empty());
  one.reset();
  std::this_thread::sleep_for(3 * timeout);
  CHECK(zero->reason().empty());
}

TEST_CASE("a thread lacks a processor while another takes it, and none while it sleeps",
          "[backend][watchdog]") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  std::atomic<bool> stop{false};
  std::promise<ProcessorLack*> measured;
  std::atomic<int> phase{0};
  std::thread thread([&] {
    sched_setaffinity(0, sizeof one, &one);
    ProcessorLack lack;
    measured.set_value(&lack);
    while (phase == 0) std::this_thread::sleep_for(10ms);
    while (phase == 1) {
    }
  });
  ProcessorLack& lack = *measured.get_future().get();
  std::this_thread::sleep_for(100ms);
  // Asleep, unless it is looked at in one of its short wakes.
  int asleep = 0;
  for (int look = 0; look < 5; ++look) {
    asleep += lack.look(1ns) == 0ns ? 1 : 0;
    std::this_thread::sleep_for(10ms);
  }
  CHECK(asleep >= 3);
  std::vector<std::thread> rivals;
  for (int rival = 0; rival < 3; ++rival)
    rivals.emplace_back([&] {
      sched_setaffinity(0, sizeof one, &one);
      while (!stop) {
      }
    });
  phase = 1;
  std::this_thread::sleep_for(100ms);
  lack.look(0ns);
  const auto begun = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(600ms);
  const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - begun;
  // A quarter of the processor is its own.
  CHECK(lack.look(passed) > passed / 2);
  phase = 2;
  stop = true;
  thread.join();
  for (std::thread& rival : rivals) rival.join();
}

}  // namespace ddpsim
