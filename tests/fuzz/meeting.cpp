// What ranks read of one another before they trust each other: what lies where they meet, what a
// Redis answers, and the first bytes of a connection.

#include <array>
#include <memory>

#include <fmt/format.h>
#include <gloo/rendezvous/hash_store.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/job/handshake.hpp"
#include "backend/job/rendezvous.hpp"
#include "backend/job/secret.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/fuzz/one_answer_server.hpp"
#include "tests/fuzz/targets.hpp"

namespace ddpsim::fuzz {
namespace {

constexpr std::chrono::milliseconds patience{1};

/// A failure is told in one line.
template <typename Function>
void check_failure(Function function) {
  try {
    function();
  } catch (const DeviceError& problem) {
    require(std::string_view(problem.what()).find('\n') == std::string_view::npos,
            "a message of several lines", problem.what());
  }
}

}  // namespace

/// Another rank's introduction, and what lies where rank 0 leaves the secret.
void rendezvous(std::string_view input) {
  const std::vector<char> bytes(input.begin(), input.end());
  auto store = std::make_shared<gloo::rendezvous::HashStore>();
  store->set("ddpsim-hello-1", bytes);
  store->set("ddpsim-secret", bytes);
  check_failure([&] { Rendezvous::in_process(store)->meet(0, 2, "agreed", patience); });
  check_failure([&] {
    const Secret secret = share_secret(*store, 1, patience);
    require(std::memcmp(secret.bytes.data(), bytes.data(), secret.bytes.size()) == 0,
            "another secret than the one that was left");
  });
}

/// Each line `%%` begins what the server answers on the next connection.
void redis(std::string_view input) {
  OneAnswerServer& server = OneAnswerServer::here();
  server.answer_with(input);
  check_failure([&] {
    const auto there = Rendezvous::open(fmt::format("redis://127.0.0.1:{}", server.port()), "job",
                                        std::chrono::milliseconds{100});
    there->meet(0, 2, "agreed", patience);
  });
}

/// Nobody who does not know the secret gets in, and nobody who speaks is believed.
void handshake(std::string_view input) {
  static const Secret secret{random_bytes()};
  std::array<int, 2> ends{};
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0,
          "no pair of sockets");
  Guest guest(ends[0], Deadline::clock::now() + patience);
  // In two parts, of which the first byte tells the first one's length.
  const std::size_t first =
      input.empty()
          ? 0
          : std::min<std::size_t>(static_cast<unsigned char>(input.front()), input.size());
  for (const std::string_view part : {input.substr(0, first), input.substr(first)}) {
    if (part.empty()) continue;
    require(send(ends[1], part.data(), part.size(), MSG_NOSIGNAL) >= 0, "no room in a socket");
    const Guest::State state = guest.advance(secret, 0);
    require(state != Guest::State::admitted, "a stranger was let in");
    if (state == Guest::State::refused) break;
  }
  close(ends[1]);
}

}  // namespace ddpsim::fuzz
