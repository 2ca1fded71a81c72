#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace ddpsim;
using namespace std::chrono_literals;

TEST_CASE("events come out earliest first", "[sim][event_queue]") {
  EventQueue<char> queue;
  queue.push(Instant{30ns}, 'c');
  queue.push(Instant{10ns}, 'a');
  queue.push(Instant{20ns}, 'b');
  CHECK(queue.next_instant() == Instant{10ns});
  CHECK(queue.pop() == 'a');
  CHECK(queue.next_instant() == Instant{20ns});
  CHECK(queue.pop() == 'b');
  CHECK_FALSE(queue.empty());
  CHECK(queue.pop() == 'c');
  CHECK(queue.empty());
}

TEST_CASE("events of one instant come out in the order they were scheduled", "[sim][event_queue]") {
  EventQueue<int> queue;
  queue.push(Instant{1ns}, -1);
  for (int i = 0; i < 100; ++i) queue.push(Instant{5ns}, i);
  CHECK(queue.pop() == -1);
  for (int i = 0; i < 50; ++i) REQUIRE(queue.pop() == i);
  // Scheduled later, although others of its instant have already gone.
  queue.push(Instant{5ns}, 100);
  for (int i = 50; i <= 100; ++i) REQUIRE(queue.pop() == i);
}

TEST_CASE("one picosecond decides", "[sim][event_queue]") {
  EventQueue<char> queue;
  const Instant late{std::chrono::hours{1000}};
  queue.push(late, 'b');
  queue.push(late - Duration{1}, 'a');
  CHECK(queue.pop() == 'a');
}

TEST_CASE("any list of events is popped as a stable sort would order it", "[sim][event_queue]") {
  struct Event {
    Instant at;
    int sequence = 0;
  };
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    EventQueue<int> queue;
    std::vector<Event> waiting;  // the oracle: sorted afresh for every pop
    int next = 0;
    for (int i = 0; i < 60; ++i) {
      if (waiting.empty() || random() % 5 < 3) {
        const Instant at{Duration{static_cast<std::int64_t>(random() % 8)}};  // many ties
        queue.push(at, next);
        waiting.push_back({at, next++});
        continue;
      }
      std::stable_sort(waiting.begin(), waiting.end(),
                       [](const Event& a, const Event& b) { return a.at < b.at; });
      REQUIRE(queue.next_instant() == waiting.front().at);
      REQUIRE(queue.pop() == waiting.front().sequence);
      waiting.erase(waiting.begin());
    }
    REQUIRE(queue.empty() == waiting.empty());
  }
}
