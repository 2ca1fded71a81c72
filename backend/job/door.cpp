#include "backend/job/door.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

constexpr int backlog = 512;
constexpr std::size_t most_guests = 256;     // more than ranks connect at once
constexpr milliseconds patience{2000};       // with one who has not shown the secret
constexpr milliseconds between_looks{500};   // at the guests' patience
constexpr milliseconds without_sockets{20};  // before the next try to accept

DeviceError cannot(const char* what) {
  return DeviceError(
      fmt::format("connecting to the other ranks: {}: {}", what, std::strerror(errno)));
}

}  // namespace

Door::Door(const sockaddr_storage& address, int self, const Secret& secret)
    : secret_(secret), self_(self), address_(address) {
  try {
    listen();
    thread_ = std::thread([this] { watch(); });
  } catch (...) {
    if (listening_ >= 0) close(listening_);
    if (wake_ >= 0) close(wake_);
    throw;
  }
}

Door::~Door() {
  shut_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
  thread_.join();
  close(listening_);
  close(wake_);
  for (const auto& [who, socket] : admitted_) close(socket);
}

void Door::listen() {
  const bool six = address_.ss_family == AF_INET6;
  if (six)
    reinterpret_cast<sockaddr_in6&>(address_).sin6_port = 0;
  else
    reinterpret_cast<sockaddr_in&>(address_).sin_port = 0;
  socklen_t size = six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  listening_ = socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listening_ < 0) throw cannot("no socket");
  auto* bound = reinterpret_cast<sockaddr*>(&address_);
  if (bind(listening_, bound, size) != 0 || ::listen(listening_, backlog) != 0 ||
      getsockname(listening_, bound, &size) != 0)
    throw cannot("this rank cannot listen");
  wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) throw cannot("no event to wait for");
}

void Door::watch() {
  try {
    while (!shut_) {
      std::vector<pollfd> watched{{listening_, POLLIN, 0}, {wake_, POLLIN, 0}};
      for (const Guest& guest : guests_) watched.push_back({guest.socket(), POLLIN, 0});
      if (poll(watched.data(), watched.size(), static_cast<int>(between_looks.count())) < 0) {
        if (errno != EINTR) throw cannot("waiting for them");
        continue;
      }
      for (std::size_t g = 0; g < guests_.size(); ++g)
        hear(guests_[g], watched[g + 2].revents != 0);
      std::erase_if(guests_, [](const Guest& guest) { return guest.socket() < 0; });
      if (watched[0].revents != 0) accept_guests();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    came_in_.notify_all();
  }
}

void Door::accept_guests() {
  for (;;) {
    const int socket = accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (socket < 0) {
      // Either nobody waits at the door, or this process has as many sockets as it may have,
      // perhaps not for long.
      if (errno != EAGAIN) std::this_thread::sleep_for(without_sockets);
      return;
    }
    if (guests_.size() >= most_guests) guests_.erase(guests_.begin());  // who was here longest
    guests_.emplace_back(socket, Deadline::clock::now() + patience);
  }
}

/// Leaves the guest without a socket once they are in or out.
void Door::hear(Guest& guest, bool ready) {
  const auto state =
      ready ? guest.advance(secret_, static_cast<std::uint32_t>(self_)) : Guest::State::unknown;
  if (state == Guest::State::unknown && Deadline::clock::now() < guest.until()) return;
  const int socket = guest.take();
  if (state != Guest::State::admitted) {
    close(socket);
    return;
  }
  const std::lock_guard lock(mutex_);
  const auto [place, first] =
      admitted_.try_emplace({guest.claim().channel, guest.claim().from}, socket);
  if (!first) close(std::exchange(place->second, socket));  // that rank has tried again
  came_in_.notify_all();
}

int Door::wait_for(int other, Channel channel, Deadline until) {
  const Deadline begun = Deadline::clock::now();
  std::unique_lock lock(mutex_);
  const std::pair who{channel, static_cast<std::uint32_t>(other)};
  const bool there = came_in_.wait_until(
      lock, until, [&] { return failure_ != nullptr || admitted_.count(who) != 0; });
  if (failure_) std::rethrow_exception(failure_);
  if (!there)
    throw DeviceError(
        fmt::format("connecting to the other ranks: rank {} did not connect within {:.3g} s", other,
                    std::chrono::duration<double>(until - begun).count()));
  const int socket = admitted_.at(who);
  admitted_.erase(who);
  return socket;
}

int Door::connection_with(int other, Channel channel, const sockaddr_storage& there,
                          Deadline until) {
  if (other > self_) return wait_for(other, channel, until);
  return visit(there,
               {channel, static_cast<std::uint32_t>(self_), static_cast<std::uint32_t>(other)},
               secret_, until);
}

}  // namespace ddpsim
