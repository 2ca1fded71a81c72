#include "backend/link/gloo/ring.hpp"

#include <algorithm>

#include "backend/cpu/float16.hpp"
#include "backend/link/gloo/room.hpp"

namespace ddpsim {

using execute::Group;
using execute::Piece;

namespace {

std::span<float> wide(const Piece& piece) {
  return {reinterpret_cast<float*>(piece.data), static_cast<std::size_t>(piece.count)};
}
std::span<std::uint16_t> narrow(const Piece& piece) {
  return {reinterpret_cast<std::uint16_t*>(piece.data), static_cast<std::size_t>(piece.count)};
}

/// A rank's place in a ring.
struct Ring {
  explicit Ring(const Group& group)
      : size(group.size()),
        me(static_cast<std::size_t>(group.place)),
        next(group.ranks[(me + 1) % size]),
        previous(group.ranks[(me + size - 1) % size]) {}
  std::size_t size, me;
  int next, previous;
};

Piece part(const Piece& values, const PartBegins& begins, std::size_t index) {
  return values.part(begins[index], begins[index + 1] - begins[index]);
}

}  // namespace

PartBegins equal_parts(std::int64_t elements, std::size_t ranks) {
  PartBegins begins;
  for (std::size_t k = 0; k <= ranks; ++k)
    begins.push_back(
        static_cast<std::int64_t>(part_begin(static_cast<std::size_t>(elements), k, ranks)));
  return begins;
}

PartBegins parts_of(const std::vector<std::int64_t>& counts) {
  PartBegins begins{0};
  for (const std::int64_t count : counts) begins.push_back(begins.back() + count);
  return begins;
}

void add_numbers(const Piece& into, const Piece& from) {
  if (size_of(into.type) == Bytes{2}) return add16(into.type, narrow(into), narrow(from));
  const std::span<float> sum = wide(into), more = wide(from);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

void add_up(const Piece& sum, const Piece& parts) {
  const auto count = static_cast<std::size_t>(sum.count);
  std::vector<float> all(count, 0.0F), theirs(count);
  for (std::int64_t begin = 0; begin < parts.count; begin += sum.count) {
    const Piece part = parts.part(begin, sum.count);
    if (size_of(sum.type) == Bytes{2})
      ddpsim::widen(sum.type, narrow(part), theirs);
    else
      std::ranges::copy(wide(part), theirs.begin());
    for (std::size_t i = 0; i < count; ++i) all[i] += theirs[i];
  }
  if (size_of(sum.type) == Bytes{2})
    ddpsim::narrow(sum.type, all, narrow(sum));
  else
    std::ranges::copy(all, wide(sum).begin());
}

void divide_numbers(const Piece& values, std::size_t divisor) {
  const auto by = static_cast<float>(divisor);
  if (size_of(values.type) == Bytes{4}) {
    for (float& value : wide(values)) value /= by;
    return;
  }
  std::vector<float> numbers(static_cast<std::size_t>(values.count));
  ddpsim::widen(values.type, narrow(values), numbers);
  for (float& value : numbers) value /= by;
  ddpsim::narrow(values.type, numbers, narrow(values));
}

void ring_reduce(Communicator& communicator, const Group& group, const Piece& values,
                 const PartBegins& begins, std::uint32_t tag) {
  const Ring ring(group);
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < ring.size; ++i)
    longest = std::max(longest, begins[i + 1] - begins[i]);
  const Room room(values.type, longest);
  for (std::size_t hop = 0; hop + 1 < ring.size; ++hop) {
    const Piece sent = part(values, begins, (ring.me + 2 * ring.size - 1 - hop) % ring.size);
    const Piece mine = part(values, begins, (ring.me + 2 * ring.size - 2 - hop) % ring.size);
    const Piece theirs = room.piece().part(0, mine.count);
    communicator.exchange({ring.next, sent.bytes()}, {ring.previous, theirs.bytes()},
                          Communicator::exchange_slot(tag));
    add_numbers(mine, theirs);
  }
}

void ring_gather(Communicator& communicator, const Group& group, const Piece& values,
                 const PartBegins& begins, std::uint32_t tag) {
  const Ring ring(group);
  for (std::size_t hop = 0; hop + 1 < ring.size; ++hop) {
    const Piece sent = part(values, begins, (ring.me + ring.size - hop) % ring.size);
    const Piece received = part(values, begins, (ring.me + 2 * ring.size - 1 - hop) % ring.size);
    communicator.exchange({ring.next, sent.bytes()}, {ring.previous, received.bytes()},
                          Communicator::exchange_slot(tag));
  }
}

void tree_broadcast(Communicator& communicator, const Group& group, std::span<std::byte> bytes,
                    std::int32_t root, std::uint32_t tag) {
  const std::size_t size = group.size();
  const auto from_root = [&](std::size_t distance) {
    return group.ranks[(static_cast<std::size_t>(root) + distance) % size];
  };
  const std::size_t me =
      (static_cast<std::size_t>(group.place) + size - static_cast<std::size_t>(root)) % size;
  const std::uint64_t slot = Communicator::exchange_slot(tag);
  for (std::size_t have = 1; have < size; have *= 2) {
    if (me < have && me + have < size)
      communicator.exchange({from_root(me + have), bytes}, {}, slot);
    else if (me >= have && me < 2 * have)
      communicator.exchange({}, {from_root(me - have), bytes}, slot);
  }
}

}  // namespace ddpsim
