// Whoever is no rank of the job takes nobody's place, whatever they send and whenever they come.
#include "backend/job/door.hpp"

#include <future>

#include <catch2/catch.hpp>
#include <gloo/rendezvous/hash_store.h>

#include "backend/device_error.hpp"
#include "backend/job/communicator.hpp"
#include "tests/backend/job/outsider.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

sockaddr_storage loopback() {
  sockaddr_storage address{};
  auto& inet = reinterpret_cast<sockaddr_in&>(address);
  inet.sin_family = AF_INET;
  inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Deadline in(std::chrono::milliseconds time) {
  return Deadline::clock::now() + time;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& problem) {
    return problem.what();
  }
  return "";
}

/// A whole job in which every rank is a thread of this process: the sum of all ranks' numbers.
float connect_and_sum(int ranks) {
  const auto store = std::make_shared<gloo::rendezvous::HashStore>();
  std::vector<std::future<float>> sums;
  for (int rank = 0; rank < ranks; ++rank)
    sums.push_back(std::async(std::launch::async, [rank, ranks, store] {
      const auto rendezvous = Rendezvous::in_process(store);
      Communicator communicator(*rendezvous, rank, ranks, "", 30s);
      std::vector<float> values{static_cast<float>(rank + 1)};
      communicator.all_reduce(std::span(values));
      communicator.barrier();
      return values[0];
    }));
  float total = 0;
  for (auto& sum : sums) total += sum.get();
  return total;
}

}  // namespace

TEST_CASE("two ranks of one secret are connected, and bytes go both ways", "[backend][door]") {
  const Secret secret{random_bytes()};
  Door zero(loopback(), 0, secret), one(loopback(), 1, secret);
  auto waiting = std::async(std::launch::async, [&] {
    return zero.connection_with(1, Channel::data, one.address(), in(20s));
  });
  const int theirs = one.connection_with(0, Channel::data, zero.address(), in(20s));
  const int ours = waiting.get();
  char letter = 0;
  CHECK(::write(theirs, "a", 1) == 1);
  while (::read(ours, &letter, 1) < 0) std::this_thread::sleep_for(1ms);
  CHECK(letter == 'a');
  CHECK(::write(ours, "b", 1) == 1);
  while (::read(theirs, &letter, 1) < 0) std::this_thread::sleep_for(1ms);
  CHECK(letter == 'b');
  close(ours);
  close(theirs);
}

TEST_CASE("who has another secret is not let in, and does not let in", "[backend][door]") {
  Door zero(loopback(), 0, Secret{random_bytes()}), one(loopback(), 1, Secret{random_bytes()});
  auto waiting = std::async(std::launch::async, [&] {
    return refusal([&] { zero.connection_with(1, Channel::data, one.address(), in(3s)); });
  });
  CHECK_THAT(
      refusal([&] { one.connection_with(0, Channel::data, zero.address(), in(3s)); }),
      Catch::StartsWith("connecting to the other ranks: rank 0 was not reached at 127.0.0.1:") &&
          Catch::EndsWith("what answers there does not belong to this job"));
  CHECK(waiting.get() == "connecting to the other ranks: rank 1 did not connect within 3 s");
}

TEST_CASE("what one rank says opens no other rank's door", "[backend][door]") {
  // One who knows no secret stands between rank 2, who believes to visit rank 0, and rank 1.
  const Secret secret{random_bytes()};
  Door one(loopback(), 1, secret), between(loopback(), 0, Secret{});
  const Claim meant{Channel::data, 2, 0};
  const int socket = knock(reinterpret_cast<const sockaddr_in&>(one.address()));
  REQUIRE(socket >= 0);
  std::vector<std::byte> greeting(52, std::byte{0});
  std::memcpy(greeting.data(), "ddpsim01", 8);
  const std::uint32_t words[3]{static_cast<std::uint32_t>(meant.channel), meant.from, meant.to};
  std::memcpy(greeting.data() + 8, words, sizeof words);
  REQUIRE(::write(socket, greeting.data(), greeting.size()) == 52);
  char answer = 0;
  CHECK(::read(socket, &answer, 1) == 0);  // closed without a word
  close(socket);
}

TEST_CASE("a conversation that was recorded is worth nothing the next time", "[backend][door]") {
  const Secret secret{random_bytes()};
  Door zero(loopback(), 0, secret);
  // A true visitor's words, by way of one who listens.
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
  std::array<std::byte, 52> greeting{};
  std::memcpy(greeting.data(), "ddpsim01", 8);
  const std::uint32_t words[3]{1, 1, 0};
  std::memcpy(greeting.data() + 8, words, sizeof words);
  Guest first(pair[0], in(5s));
  REQUIRE(::write(pair[1], greeting.data(), greeting.size()) == 52);
  REQUIRE(first.advance(secret, 0) == Guest::State::unknown);
  std::array<std::byte, 64> answer{}, next{};
  REQUIRE(::read(pair[1], answer.data(), answer.size()) == 64);
  close(pair[1]);
  // The same greeting draws another number, so a proof of the first answer proves nothing.
  const int socket = knock(reinterpret_cast<const sockaddr_in&>(zero.address()));
  REQUIRE(::write(socket, greeting.data(), greeting.size()) == 52);
  REQUIRE(recv(socket, next.data(), next.size(), MSG_WAITALL) == 64);
  CHECK(next != answer);
  // What the rank said, said back, is no visitor's proof.
  REQUIRE(::write(socket, next.data() + 32, 32) == 32);
  char word = 0;
  CHECK(::read(socket, &word, 1) <= 0);
  close(socket);
}

TEST_CASE("outsiders of every kind do not keep ranks from each other", "[backend][door]") {
  const Secret secret{random_bytes()};
  Door zero(loopback(), 0, secret), one(loopback(), 1, secret), two(loopback(), 2, secret);
  const Outsider outsider(getpid());
  const auto visited = [&](int more) {
    const int before = outsider.visits();
    for (int look = 0; look < 3000 && outsider.visits() < before + more; ++look)
      std::this_thread::sleep_for(10ms);
    return outsider.visits() >= before + more;
  };
  REQUIRE(visited(50));
  const auto connection = [](Door& from, Door& to, Channel channel) {
    return std::async(std::launch::async, [&from, &to, channel] {
      return from.connection_with(to.self(), channel, to.address(), in(60s));
    });
  };
  for (const Channel channel : {Channel::data, Channel::pulse}) {
    std::vector<std::future<int>> ends;
    for (Door* from : {&zero, &one, &two})
      for (Door* to : {&zero, &one, &two})
        if (from != to) ends.push_back(connection(*from, *to, channel));
    for (auto& end : ends) {
      const int socket = end.get();
      CHECK(socket >= 0);
      close(socket);
    }
    CHECK(visited(10));
  }
}

TEST_CASE("a whole job connects and adds up", "[backend][door]") {
  const int ranks = GENERATE(1, 2, 5);
  CHECK(connect_and_sum(ranks) == static_cast<float>(ranks * ranks * (ranks + 1) / 2));
}

TEST_CASE("a rank that is gone is told at once", "[backend][door]") {
  const Secret secret{random_bytes()};
  sockaddr_storage there{};
  {
    const Door zero(loopback(), 0, secret);
    there = zero.address();
  }
  Door one(loopback(), 1, secret);
  const Deadline begun = Deadline::clock::now();
  CHECK_THAT(refusal([&] { one.connection_with(0, Channel::data, there, in(60s)); }),
             Catch::StartsWith("connecting to the other ranks: rank 0 is gone from 127.0.0.1:"));
  CHECK(Deadline::clock::now() - begun < 30s);
}

}  // namespace ddpsim
