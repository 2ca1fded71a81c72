// Anybody on the machine, and on the network if ranks are on several hosts, can connect to where a
// rank waits for its peers. So before a byte of a connection reaches Gloo, which believes what it
// reads, both ends show that they know the job's secret, and neither says it:
//
//   visitor  ->  who is who, what for, and a random number v
//   rank     ->  a random number r, and HMAC(secret, "rank",    who is who, what for, v, r)
//   visitor  ->                         HMAC(secret, "visitor", who is who, what for, v, r)
//   rank     ->  a byte: come in
//
// The numbers are new each time, so a recording of an older conversation is worth nothing; the
// words "rank" and "visitor" differ, so what one end said cannot be given back as one's own; and
// who is who is part of it, so that a proof meant for one rank does not open another. What is sent
// afterwards is neither encrypted nor signed.
//
// Source: the challenge and response of ISO/IEC 9798-4, mutual authentication in three passes.

#include "backend/job/handshake.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;
using Number = std::array<std::byte, 32>;

constexpr std::array<char, 8> magic{'d', 'd', 'p', 's', 'i', 'm', '0', '1'};
constexpr std::size_t claim_size = 3 * sizeof(std::uint32_t);
constexpr std::size_t greeting_size = magic.size() + claim_size + sizeof(Number);
constexpr std::size_t answer_size = 2 * sizeof(Number);
constexpr std::byte come_in{'!'};
constexpr milliseconds pause{20};          // between two tries
constexpr milliseconds longest_try{2000};  // somebody who holds the line must not take it all

void append(std::vector<std::byte>& message, const void* bytes, std::size_t size) {
  const auto* begin = static_cast<const std::byte*>(bytes);
  message.insert(message.end(), begin, begin + size);
}

void append(std::vector<std::byte>& message, const Claim& claim) {
  for (const std::uint32_t each : {static_cast<std::uint32_t>(claim.channel), claim.from, claim.to})
    append(message, &each, sizeof each);
}

Number proof(const Secret& secret, const char* whose, const Claim& claim, const Number& visitors,
             const Number& ranks) {
  std::vector<std::byte> message;
  append(message, whose, std::strlen(whose) + 1);
  append(message, claim);
  append(message, visitors.data(), visitors.size());
  append(message, ranks.data(), ranks.size());
  return secret.sign(message);
}

bool send_whole(int socket, const void* bytes, std::size_t size) {
  ssize_t sent = -1;
  do {
    sent = send(socket, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);  // a fresh connection has room for so little
}

/// Until `socket` is ready for `events`; false: not in time.
bool wait_for(int socket, short events, Deadline until) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Deadline::clock::now());
    pollfd wanted{socket, events, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::clamp<long>(left.count(), 0, 60'000)));
    if (ready > 0) return true;
    if (ready == 0 && Deadline::clock::now() >= until) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool receive_whole(int socket, void* into, std::size_t size, Deadline until) {
  auto* next = static_cast<std::byte*>(into);
  while (size > 0) {
    if (!wait_for(socket, POLLIN, until)) return false;
    const ssize_t got = recv(socket, next, size, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return false;
    if (got < 0) continue;
    next += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

socklen_t size_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

/// 0, or what went wrong.
int connect_to(int socket, const sockaddr_storage& address, Deadline until) {
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), size_of(address)) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_for(socket, POLLOUT, until)) return ETIMEDOUT;
  int problem = 0;
  socklen_t size = sizeof problem;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 ? problem : errno;
}

/// The visitor's side of the conversation; empty: both have shown who they are.
std::string converse(int socket, const Claim& claim, const Secret& secret, Deadline until) {
  const Number mine = random_bytes();
  std::vector<std::byte> greeting;
  append(greeting, magic.data(), magic.size());
  append(greeting, claim);
  append(greeting, mine.data(), mine.size());
  std::array<std::byte, answer_size> answer{};
  if (!send_whole(socket, greeting.data(), greeting.size()) ||
      !receive_whole(socket, answer.data(), answer.size(), until))
    return "it does not answer";
  Number theirs{}, shown{};
  std::copy_n(answer.begin(), theirs.size(), theirs.begin());
  std::copy_n(answer.begin() + sizeof(Number), shown.size(), shown.begin());
  if (!same(shown, proof(secret, "rank", claim, mine, theirs)))
    return "what answers there does not belong to this job";
  const Number shows = proof(secret, "visitor", claim, mine, theirs);
  std::byte word{};
  if (!send_whole(socket, shows.data(), shows.size()) || !receive_whole(socket, &word, 1, until) ||
      word != come_in)
    return "it did not let this rank in";
  return "";
}

}  // namespace

Guest::~Guest() {
  if (socket_ >= 0) close(socket_);
}

Guest::Guest(Guest&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      until_(other.until_),
      claim_(other.claim_),
      received_(other.received_),
      size_(other.size_),
      answered_(other.answered_),
      ours_(other.ours_),
      theirs_(other.theirs_) {}

Guest& Guest::operator=(Guest&& other) noexcept {
  if (this == &other) return *this;
  if (socket_ >= 0) close(socket_);
  socket_ = std::exchange(other.socket_, -1);
  until_ = other.until_;
  claim_ = other.claim_;
  received_ = other.received_;
  size_ = other.size_;
  answered_ = other.answered_;
  ours_ = other.ours_;
  theirs_ = other.theirs_;
  return *this;
}

int Guest::take() {
  return std::exchange(socket_, -1);
}

bool Guest::greeted(const Secret& secret, std::uint32_t self) {
  if (std::memcmp(received_.data(), magic.data(), magic.size()) != 0) return false;
  std::array<std::uint32_t, 3> claim{};
  std::memcpy(claim.data(), received_.data() + magic.size(), claim_size);
  std::copy_n(received_.begin() + magic.size() + claim_size, theirs_.size(), theirs_.begin());
  claim_ = {static_cast<Channel>(claim[0]), claim[1], claim[2]};
  if (claim_.to != self) return false;
  ours_ = random_bytes();
  const Number shows = proof(secret, "rank", claim_, theirs_, ours_);
  std::vector<std::byte> answer(ours_.begin(), ours_.end());
  append(answer, shows.data(), shows.size());
  return send_whole(socket_, answer.data(), answer.size());
}

bool Guest::proven(const Secret& secret) const {
  Number shown{};
  std::copy_n(received_.begin(), shown.size(), shown.begin());
  return same(shown, proof(secret, "visitor", claim_, theirs_, ours_)) &&
         send_whole(socket_, &come_in, 1);
}

Guest::State Guest::advance(const Secret& secret, std::uint32_t self) {
  static_assert(sizeof(received_) == greeting_size);
  for (;;) {
    // Reads the message and not a byte more: what follows the last message is for Gloo.
    const std::size_t wanted = answered_ ? sizeof(Number) : greeting_size;
    const ssize_t got = recv(socket_, received_.data() + size_, wanted - size_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return State::unknown;
    if (got <= 0) return State::refused;
    size_ += static_cast<std::size_t>(got);
    if (size_ < wanted) continue;
    if (answered_) return proven(secret) ? State::admitted : State::refused;
    if (!greeted(secret, self)) return State::refused;
    answered_ = true;
    size_ = 0;
  }
}

int visit(const sockaddr_storage& address, const Claim& claim, const Secret& secret,
          Deadline until) {
  const Deadline begun = Deadline::clock::now();
  std::string why;  // of the last try that was not cut short
  for (;;) {
    const int socket = ::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) throw DeviceError(fmt::format("no socket: {}", std::strerror(errno)));
    const Deadline this_try = std::min(until, Deadline::clock::now() + longest_try);
    const int problem = connect_to(socket, address, this_try);
    const std::string now =
        problem == 0 ? converse(socket, claim, secret, this_try) : std::strerror(problem);
    if (now.empty()) return socket;
    close(socket);
    if (why.empty() || Deadline::clock::now() < until) why = now;
    if (problem == ECONNREFUSED)  // a rank waits before it says where
      throw DeviceError(fmt::format("connecting to the other ranks: rank {} is gone from {}",
                                    claim.to, text_of(address)));
    if (Deadline::clock::now() + pause >= until)
      throw DeviceError(fmt::format(
          "connecting to the other ranks: rank {} was not reached at {} within {:.3g} s: {}",
          claim.to, text_of(address), std::chrono::duration<double>(until - begun).count(), why));
    std::this_thread::sleep_for(pause);
  }
}

std::string text_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    const auto& inet = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &inet.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(inet.sin_port));
  }
  const auto& inet6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (address.ss_family == AF_INET6) inet_ntop(AF_INET6, &inet6.sin6_addr, text, sizeof text);
  return fmt::format("[{}]:{}", text, ntohs(inet6.sin6_port));
}

}  // namespace ddpsim
