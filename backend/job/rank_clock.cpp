#include "backend/job/rank_clock.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

constexpr int rounds = 8;  // of ping-pong with each rank
/// The slot of the messages of ping-pong, beyond those of the collectives.
constexpr std::uint64_t slot = std::uint64_t{1} << 40;

/// Names this boot of this machine: equal where ranks share a clock.
std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, id);
  return id;
}

}  // namespace

RankClock::RankClock(Communicator& communicator) : communicator_(communicator) {
  const std::string mine = boot_id();
  for (const auto& theirs : communicator_.gather(std::as_bytes(std::span(mine))))
    one_host_ = one_host_ && !mine.empty() && theirs.size() == mine.size() &&
                std::memcmp(theirs.data(), mine.data(), mine.size()) == 0;
  std::int64_t epoch =
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (one_host_)
    communicator_.broadcast({reinterpret_cast<char*>(&epoch), sizeof(epoch)});
  else
    communicator_.barrier();
  epoch_ = std::chrono::nanoseconds{epoch};
}

Instant RankClock::now() const {
  return Instant{std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()) -
                 epoch_};
}

void RankClock::align() {
  if (one_host_ || communicator_.ranks() == 1) return;
  communicator_.guarded("aligning clocks",
                        [&] { communicator_.rank() == 0 ? answer_all() : ask_rank_0(); });
}

/// Rank 0 tells every other rank in turn what its clock shows.
void RankClock::answer_all() {
  std::int64_t value = 0;
  auto buffer = communicator_.context().createUnboundBuffer(&value, sizeof(value));
  for (int other = 1; other < communicator_.ranks(); ++other)
    for (int round = 0; round < rounds; ++round) {
      buffer->recv(other, slot);
      buffer->waitRecv(Communicator::patience());
      value = now().time_since_epoch().count();
      buffer->send(other, slot);
      buffer->waitSend(Communicator::patience());
    }
}

void RankClock::ask_rank_0() {
  std::int64_t value = 0;
  auto buffer = communicator_.context().createUnboundBuffer(&value, sizeof(value));
  Duration fastest = Duration::max();
  for (int round = 0; round < rounds; ++round) {
    const Instant sent = now();
    buffer->send(0, slot);
    buffer->waitSend(Communicator::patience());
    buffer->recv(0, slot);
    buffer->waitRecv(Communicator::patience());
    const Duration trip = now() - sent;
    if (trip >= fastest) continue;
    fastest = trip;
    offset_ = (sent + trip / 2) - Instant{Duration{value}};
  }
}

Instant RankClock::agree_on_start(Duration head_start) {
  communicator_.barrier();
  std::int64_t agreed = (now() + head_start).time_since_epoch().count();
  communicator_.broadcast({reinterpret_cast<char*>(&agreed), sizeof(agreed)});
  // A second at most: whatever the clocks are, nobody waits for hours.
  return std::min(to_local(Instant{Duration{agreed}}), now() + std::chrono::seconds{1});
}

std::vector<Instant> RankClock::latest(std::vector<Instant> mine) {
  for (Instant& each : mine) each -= offset_;
  std::vector<Instant> last = mine;
  for (const auto& bytes : communicator_.gather(std::as_bytes(std::span(mine)))) {
    if (bytes.size() != mine.size() * sizeof(Instant))
      throw DeviceError("the ranks ran different numbers of collectives");
    for (std::size_t k = 0; k < last.size(); ++k) {
      Instant theirs;
      std::memcpy(&theirs, bytes.data() + k * sizeof(Instant), sizeof(Instant));
      last[k] = std::max(last[k], theirs);
    }
  }
  for (Instant& each : last) each = to_local(each);
  return last;
}

}  // namespace ddpsim
