#include "backend/job/watchdog.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/cpu/priority.hpp"
#include "backend/device_error.hpp"
#include "backend/job/rank_failure.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int ticks_of_a_timeout = 8;
constexpr milliseconds longest_tick{250};
constexpr milliseconds shortest_tick{20};
constexpr milliseconds patience_with_host{1500};  // between the reason and the last resort

}  // namespace

PulseLine::PulseLine(PulseLine&& from) noexcept
    : silent(from.silent),
      lacked(from.lacked),
      counted(from.counted),
      other_(from.other_),
      socket_(std::exchange(from.socket_, -1)),
      broken_(from.broken_),
      received_(std::move(from.received_)) {}

PulseLine::~PulseLine() {
  hang_up();
}

void PulseLine::hang_up() {
  if (open()) close(std::exchange(socket_, -1));
}

void PulseLine::say(const Message& message) {
  if (!open()) return;
  // A message that finds the connection full is dropped: the rank at the other end does not read,
  // and its silence is noticed in any case.
  if (send(socket_, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
      (errno == EPIPE || errno == ECONNRESET))
    broken_ = true;
}

std::optional<PulseLine::Message> PulseLine::hear() {
  while (open() && received_.size() < sizeof(Message)) {
    char bytes[256];
    const ssize_t got = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return std::nullopt;
    if (got <= 0) {
      broken_ = true;
      return std::nullopt;
    }
    received_.append(bytes, static_cast<std::size_t>(got));
  }
  if (received_.size() < sizeof(Message)) return std::nullopt;
  Message message;
  std::memcpy(&message, received_.data(), sizeof message);
  received_.erase(0, sizeof message);
  return message;
}

Watchdog::Watchdog(Options options, std::vector<PulseLine> lines,
                   std::shared_ptr<const std::atomic<std::uint64_t>> moved)
    : options_(std::move(options)),
      lines_(std::move(lines)),
      moved_(std::move(moved)),
      tick_(std::clamp<nanoseconds>(options_.timeout / ticks_of_a_timeout, shortest_tick,
                                    longest_tick)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (wake_ < 0)
    throw DeviceError(
        fmt::format("the system gives no event file (eventfd): {}", std::strerror(errno)));
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (...) {
    close(wake_);
    throw;
  }
}

Watchdog::~Watchdog() {
  stop_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
  thread_.join();
  close(wake_);
  if (std::uncaught_exceptions() == 0 && reason_.empty())
    tell({PulseLine::Word::bye, options_.rank, 0});
}

std::uint64_t Watchdog::begin() {
  const std::lock_guard lock(mutex_);
  under_way_.insert(++calls_);
  return calls_;
}

void Watchdog::end(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  under_way_.erase(number);
}

std::string Watchdog::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void Watchdog::watch() {
  take_role(Role::communication);
  auto before = Clock::now();
  while (!stop_) {
    listen(before + tick_);
    const auto now = Clock::now();
    const nanoseconds passed = now - before;
    before = now;
    count(passed, std::max(passed - tick_, nanoseconds{0}));
    tell({PulseLine::Word::alive, options_.rank, lacked_.count()});
    end_process_if_late();
  }
}

/// What the others say until then.
void Watchdog::listen(Clock::time_point until) {
  while (!stop_) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    std::vector<pollfd> watched{{wake_, POLLIN, 0}};
    for (const PulseLine& line : lines_)
      if (line.open()) watched.push_back({line.socket(), POLLIN, 0});
    const int ready =
        poll(watched.data(), watched.size(), static_cast<int>(std::max<long>(left, 0)));
    if (ready == 0 || (ready < 0 && errno != EINTR)) return;
    for (PulseLine& line : lines_) hear(line);
    if (Clock::now() >= until) return;
  }
}

void Watchdog::hear(PulseLine& line) {
  while (const auto message = line.hear()) {
    line.silent = nanoseconds{0};
    switch (message->word) {
      case PulseLine::Word::alive:
        line.lacked = nanoseconds{message->lacked_ns};
        break;
      case PulseLine::Word::bye:
        return line.hang_up();
      case PulseLine::Word::gone:
        rank_is_gone(message->rank);
        break;
      case PulseLine::Word::silent:
        rank_is_silent(message->rank);
        break;
    }
  }
  if (!line.broken() || !line.open()) return;
  line.hang_up();
  rank_is_gone(line.other());
}

void Watchdog::count(nanoseconds passed, nanoseconds late) {
  const nanoseconds own_lack = std::min(passed, std::max(host_lack_.look(passed), late));
  count_silence(passed, late);
  waited_ -= excuse(own_lack);
  count_waiting(passed);
}

/// What has been lacking since the last tick, by whoever lacked most. Ranks other than 0 hear of it
/// from rank 0, themselves included, a little later.
nanoseconds Watchdog::excuse(nanoseconds own_lack) {
  nanoseconds others{0};
  for (PulseLine& line : lines_)
    others = std::max(others, line.lacked - std::exchange(line.counted, line.lacked));
  if (options_.rank == 0) {
    const nanoseconds longest = std::max(own_lack, others);
    lacked_ += longest;
    return longest;
  }
  lacked_ += own_lack;
  own_unheard_ += own_lack;
  const nanoseconds more = std::max(others - own_unheard_, nanoseconds{0});
  own_unheard_ = std::max(own_unheard_ - others, nanoseconds{0});
  return own_lack + more;
}

/// Time in which this thread did not run is no silence of the others.
void Watchdog::count_silence(nanoseconds passed, nanoseconds late) {
  for (PulseLine& line : lines_) {
    if (!line.open()) continue;
    line.silent += passed - late;
    if (line.silent > options_.timeout) {
      line.hang_up();
      rank_is_silent(line.other());
    }
  }
}

void Watchdog::count_waiting(nanoseconds passed) {
  std::uint64_t oldest = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!under_way_.empty()) oldest = *under_way_.begin();
  }
  const std::uint64_t moved = *moved_;
  const bool same_call = oldest != 0 && oldest == waited_for_ && moved == moved_before_;
  waited_for_ = oldest;
  moved_before_ = moved;
  waited_ = same_call ? std::max(waited_ + passed, nanoseconds{0}) : nanoseconds{0};
  if (waited_ > options_.timeout)
    give_up(fmt::format("a rank did not answer within {:g} s",
                        std::chrono::duration<double>(options_.timeout).count()));
}

void Watchdog::tell(const PulseLine::Message& message) {
  for (PulseLine& line : lines_) line.say(message);
}

void Watchdog::rank_is_gone(int rank) {
  if (options_.rank == 0) tell({PulseLine::Word::gone, rank, 0});
  give_up(fmt::format("lost another rank: rank {} is gone", rank));
}

void Watchdog::rank_is_silent(int rank) {
  if (options_.rank == 0) tell({PulseLine::Word::silent, rank, 0});
  give_up(fmt::format("rank {} did not answer within {:g} s: it is stopped or out of reach", rank,
                      std::chrono::duration<double>(options_.timeout).count()));
}

void Watchdog::give_up(const std::string& reason) {
  if (gave_up_) return;
  gave_up_ = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    reason_ = reason;
  }
  options_.disconnect();
  hurry(host_lack_.thread());  // it has its end to make
}

void Watchdog::end_process_if_late() const {
  if (!options_.last_resort || !gave_up_ || Clock::now() - *gave_up_ < patience_with_host) return;
  print_line(fmt::format("rank {}: {}", options_.rank, reason()));
  _exit(failure_code);
}

}  // namespace ddpsim
