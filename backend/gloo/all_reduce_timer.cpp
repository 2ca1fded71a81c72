#include "backend/gloo/all_reduce_timer.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

constexpr Bytes beyond_caches{128 << 20};

std::size_t count_of(Bytes size) {
  return static_cast<std::size_t>(std::max<std::int64_t>(1, size.count / 4));
}

}  // namespace

std::span<float> AllReduceTimer::values(Bytes size) {
  if (store_.size() < count_of(size)) store_.assign(count_of(size), 0);
  return std::span(store_).first(count_of(size));
}

/// Another piece of memory each time, as gradients are: not what the caches have just seen.
std::span<float> AllReduceTimer::next_piece(Bytes size) {
  const std::span<float> all = values(std::max(size, beyond_caches));
  next_piece_ = next_piece_ + count_of(size) <= all.size() ? next_piece_ : 0;
  const std::span<float> piece = all.subspan(next_piece_, count_of(size));
  next_piece_ += count_of(size);
  return piece;
}

std::vector<Duration> AllReduceTimer::time(Bytes size, int count, bool waiting) {
  values(std::max(size, beyond_caches));  // made before the ranks start together
  std::vector<Instant> arrivals, ends;
  std::uint64_t ticket = 0;
  connection_.start_together();
  connection_.or_disconnect([&] {
    for (int i = 0; i <= count; ++i) {
      ticket = connection_.threads().submit([&, piece = next_piece(size)] {
        arrivals.push_back(connection_.now());
        connection_.communicator().all_reduce(piece);
        ends.push_back(connection_.now());
      });
      if (waiting) connection_.threads().wait(ticket);
    }
    connection_.threads().wait(ticket);
  });
  const std::vector<Instant> starts = connection_.latest(arrivals);
  std::vector<Duration> times;
  // Where the host waits for each all-reduce, the time until the other ranks are there again
  // belongs to the cost of waiting.
  for (std::size_t i = 1; i < starts.size(); ++i)
    times.push_back(ends[i] - (waiting ? ends[i - 1] : starts[i]));
  return times;
}

}  // namespace ddpsim
