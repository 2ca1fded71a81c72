#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include "backend/cpu/float16.hpp"
#include "backend/device_error.hpp"
#include "backend/job/communicator.hpp"

namespace ddpsim {
namespace {

/// The slot of these messages: another than those of Gloo's collectives and of the alignment of
/// clocks. The tag of a call is added above it.
constexpr std::uint64_t ring_slot = std::uint64_t{1} << 41;

/// into += from, numbers of `type`.
void add_numbers(DType type, std::span<std::byte> into, std::span<const std::byte> from) {
  if (size_of(type) == Bytes{4}) {
    auto* sum = reinterpret_cast<float*>(into.data());
    const auto* more = reinterpret_cast<const float*>(from.data());
    for (std::size_t i = 0; i < into.size() / sizeof(float); ++i) sum[i] += more[i];
    return;
  }
  add16(type, {reinterpret_cast<std::uint16_t*>(into.data()), into.size() / sizeof(std::uint16_t)},
        {reinterpret_cast<const std::uint16_t*>(from.data()), from.size() / sizeof(std::uint16_t)});
}

/// This rank among the members of a ring, with its neighbours.
struct RingPlace {
  RingPlace(std::span<const int> members, int rank) : size(members.size()) {
    const auto self = std::find(members.begin(), members.end(), rank);
    if (self == members.end()) throw DeviceError("reduce: this rank is not one of those that do");
    me = static_cast<std::size_t>(self - members.begin());
    next = members[(me + 1) % size];
    previous = members[(me + size - 1) % size];
  }
  std::size_t size, me = 0;
  int next = 0, previous = 0;
};

}  // namespace

// Part k travels once around the ring, from member k + 1 on, and every member adds its own; with
// `everywhere` the finished parts then travel once more.
void Communicator::ring_reduce(DType type, std::span<std::byte> values,
                               std::span<const int> members, bool everywhere, std::uint32_t tag) {
  if (members.size() <= 1 || values.empty()) return;
  const RingPlace ring(members, rank_);
  const std::size_t n = ring.size, me = ring.me;
  const auto element = static_cast<std::size_t>(size_of(type).count);
  const std::size_t count = values.size() / element;
  const auto begin = [&](std::size_t part) { return part_begin(count, part, n) * element; };
  std::vector<std::byte> arrived((count + n - 1) / n * element);
  const std::uint64_t slot = ring_slot + (std::uint64_t{tag % 4096} << 42);
  guarded("reduce", [&] {
    auto sender = context_->createUnboundBuffer(values.data(), values.size());
    auto receiver = context_->createUnboundBuffer(arrived.data(), arrived.size());
    const auto hop_with = [&](std::size_t sent, std::size_t received, auto take) {
      const std::size_t out = begin(sent + 1) - begin(sent);
      const std::size_t in = begin(received + 1) - begin(received);
      if (in > 0) receiver->recv(ring.previous, slot, 0, in);
      if (out > 0) sender->send(ring.next, slot, begin(sent), out);
      if (in > 0) receiver->waitRecv(patience());
      if (out > 0) sender->waitSend(patience());
      take(values.subspan(begin(received), in), std::span(arrived).first(in));
    };
    for (std::size_t hop = 0; hop + 1 < n; ++hop)
      hop_with((me + 2 * n - 1 - hop) % n, (me + 2 * n - 2 - hop) % n,
               [&](std::span<std::byte> mine, std::span<const std::byte> theirs) {
                 add_numbers(type, mine, theirs);
               });
    for (std::size_t hop = 0; everywhere && hop + 1 < n; ++hop)
      hop_with((me + n - hop) % n, (me + 2 * n - 1 - hop) % n,
               [](std::span<std::byte> mine, std::span<const std::byte> theirs) {
                 std::copy(theirs.begin(), theirs.end(), mine.begin());
               });
  });
}

}  // namespace ddpsim
