// NCCL's collectives take what a rank sends from anywhere but the midst of what it receives, in
// parts that are alike. Where a job has it otherwise, the collective works on room of its own.

#include "backend/link/nccl/rank_collectives.hpp"

#include <algorithm>

namespace ddpsim {

using execute::Exchange;
using execute::Group;
using execute::Piece;
using program::Collective;
using program::Collectives;
using program::Reduction;

namespace {

Bytes size_in_bytes(const Piece& piece) {
  return piece.count * size_of(piece.type);
}

bool overlap(const Piece& one, const Piece& other) {
  return !one.empty() && !other.empty() && one.data < other.data + other.bytes().size() &&
         other.data < one.data + one.bytes().size();
}

std::int64_t ranks_of(const Group& group) {
  return static_cast<std::int64_t>(group.size());
}

/// Do both lie in one piece of memory, but not as NCCL has it?
bool is_in_the_way(const Collective& collective, const Exchange& exchange) {
  const auto& [from, to] = std::tie(exchange.from, exchange.to);
  if (!overlap(from, to)) return false;
  const std::int32_t place = exchange.group.place;
  switch (collective.what) {
    case Collectives::all_reduce:
    case Collectives::broadcast:
      return !(from == to);
    case Collectives::all_gather:
      return !(from == to) && to.part(place * from.count, from.count).data != from.data;
    case Collectives::reduce_scatter:
      return !(from == to) && from.part(place * to.count, to.count).data != to.data;
    case Collectives::all_to_all:
      return true;
  }
  return true;
}

/// Does it work on what all ranks have in place, in parts that are not alike?
bool has_uneven_parts(const Collective& collective, const Exchange& exchange) {
  const bool in_parts =
      (collective.what == Collectives::all_gather && collective.reduction == Reduction::none) ||
      collective.what == Collectives::reduce_scatter;
  return in_parts && exchange.from == exchange.to &&
         exchange.to.count % ranks_of(exchange.group) != 0;
}

RanksCall call_of(const CollectivePlace& place, const std::byte* from, const Piece& to,
                  std::int64_t count) {
  return {place.communicator, place.stream, from, to.data, count, to.type};
}

}  // namespace

RankPart::RankPart(std::int64_t elements, std::size_t ranks, std::int32_t place)
    : size((elements + static_cast<std::int64_t>(ranks) - 1) / static_cast<std::int64_t>(ranks)),
      begin(std::min(elements, place * size)),
      count(std::min(size, elements - begin)) {}

Bytes RankCollectives::room_for(const Collective& collective, const Exchange& exchange) {
  const std::int64_t ranks = ranks_of(exchange.group);
  const Bytes element = size_of(exchange.to.type);
  if (has_uneven_parts(collective, exchange))
    return ranks * RankPart(exchange.to.count, exchange.group.size(), 0).size * element;
  if (collective.what == Collectives::all_gather && collective.reduction != Reduction::none)
    return ranks * size_in_bytes(exchange.from);
  return is_in_the_way(collective, exchange) ? size_in_bytes(exchange.from) : Bytes{};
}

void RankCollectives::run(const Collective& collective, const Exchange& exchange,
                          const CollectivePlace& place) {
  const Piece& to = exchange.to;
  Piece from = exchange.from;
  const bool mean = collective.reduction == Reduction::mean;
  if (to.empty() && from.empty()) return;
  if (has_uneven_parts(collective, exchange)) {
    if (collective.what == Collectives::all_gather) return gather_in_place(exchange, place);
    return scatter(exchange, mean, place);
  }
  const bool gathers_sum =
      collective.what == Collectives::all_gather && collective.reduction != Reduction::none;
  if (is_in_the_way(collective, exchange) && !gathers_sum) {
    const Piece staged{from.type, place.room, from.count};
    copy(staged, from, place.stream);
    from = staged;
  }
  switch (collective.what) {
    case Collectives::all_reduce:
      return gpu_.all_reduce(call_of(place, from.data, to, to.count), mean);
    case Collectives::broadcast:
      return gpu_.broadcast(call_of(place, from.data, to, to.count), collective.root);
    case Collectives::all_gather: {
      if (gathers_sum) {
        const std::int64_t ranks = ranks_of(exchange.group);
        const Piece all{from.type, place.room, ranks * from.count};
        gather(all, from, exchange.group, place);
        return add_up(to, all, ranks, mean, place);
      }
      const std::int64_t part = to.count / ranks_of(exchange.group);
      if (from == to) from = to.part(exchange.group.place * part, part);
      return gather(to, from, exchange.group, place);
    }
    case Collectives::reduce_scatter: {
      const std::int64_t part = from.count / ranks_of(exchange.group);
      const Piece own =
          exchange.from == to ? to.part(exchange.group.place * part, part) : to.part(0, part);
      return gpu_.reduce_scatter(call_of(place, from.data, own, part), mean);
    }
    case Collectives::all_to_all:
      return all_to_all(to, from, exchange.group, place);
  }
}

void RankCollectives::gather(const Piece& to, const Piece& from, const Group&,
                             const CollectivePlace& place) {
  gpu_.all_gather(call_of(place, from.data, to, from.count));
}

void RankCollectives::gather_in_place(const Exchange& exchange, const CollectivePlace& place) {
  const Piece& data = exchange.to;
  const RankPart part(data.count, exchange.group.size(), exchange.group.place);
  const Piece all{data.type, place.room, ranks_of(exchange.group) * part.size};
  const Piece own = all.part(exchange.group.place * part.size, part.size);
  copy(own.part(0, part.count), data.part(part.begin, part.count), place.stream);
  gather(all, own, exchange.group, place);
  copy(data, all.part(0, data.count), place.stream);
}

void RankCollectives::scatter(const Exchange& exchange, bool mean, const CollectivePlace& place) {
  const Piece& data = exchange.to;
  const RankPart part(data.count, exchange.group.size(), exchange.group.place);
  const Piece all{data.type, place.room, ranks_of(exchange.group) * part.size};
  const Piece own = all.part(exchange.group.place * part.size, part.size);
  copy(all.part(0, data.count), data, place.stream);
  const Piece padding = all.part(data.count, all.count - data.count);
  gpu_.clear(place.stream, padding.data, size_in_bytes(padding));
  gpu_.reduce_scatter(call_of(place, all.data, own, part.size), mean);
  copy(data.part(part.begin, part.count), own.part(0, part.count), place.stream);
}

void RankCollectives::all_to_all(const Piece& to, const Piece& from, const Group& group,
                                 const CollectivePlace& place) {
  const std::int64_t part = from.count / ranks_of(group);
  std::vector<GpuMessage> messages;
  for (std::int32_t k = 0; k < ranks_of(group); ++k) {
    const Piece sent = from.part(k * part, part), received = to.part(k * part, part);
    messages.push_back({k, sent.data, size_in_bytes(sent), false});
    messages.push_back({k, received.data, size_in_bytes(received), true});
  }
  gpu_.exchange(place.communicator, place.stream, messages);
}

void RankCollectives::add_up(const Piece& to, const Piece& parts, std::int64_t ranks, bool mean,
                             const CollectivePlace& place) {
  if (ranks == 1) return copy(to, parts, place.stream);
  const std::byte* sum = parts.data;
  for (std::int64_t k = 1; k < ranks; ++k) {
    gpu_.combine(place.stream, to.data, sum, parts.part(k * to.count, to.count).data, to.count,
                 to.type, 1, 1);
    sum = to.data;
  }
  if (mean)
    gpu_.scale(place.stream, to.data, to.data, to.count, to.type, 1 / static_cast<float>(ranks));
}

void RankCollectives::copy(const Piece& to, const Piece& from, GpuStream stream) {
  if (to.data != from.data && !from.empty())
    gpu_.copy(stream, to.data, from.data, size_in_bytes(from));
}

// ------------------------------------------------------------------------------------------------

void LoopbackCollectives::reserve_zeros(Bytes size) {
  if (size <= zeros_size_) return;
  zeros_.reset();
  zeros_ = gpu_.allocate(size, "what is gathered from ranks that are not there");
  gpu_.clear(first_stream, zeros_.get(), size);
  zeros_size_ = size;
}

/// Both ends of what is moved, or what comes of others; for the latter there are zeros, too.
Bytes LoopbackCollectives::room_for(const Collective& collective, const Exchange& exchange) {
  const std::int64_t ranks = ranks_of(exchange.group);
  const Bytes element = size_of(exchange.to.type);
  switch (collective.what) {
    case Collectives::all_reduce:
      return 4 * size_in_bytes(exchange.to);
    case Collectives::broadcast:
      return 2 * size_in_bytes(exchange.to);
    case Collectives::all_gather: {
      const bool in_place = exchange.from == exchange.to && collective.reduction == Reduction::none;
      const std::int64_t part = in_place
                                    ? RankPart(exchange.to.count, exchange.group.size(), 0).size
                                    : exchange.from.count;
      reserve_zeros(ranks * part * element);
      return ranks * part * element;
    }
    case Collectives::reduce_scatter:
      return 2 * ranks * RankPart(exchange.from.count, exchange.group.size(), 0).size * element;
    case Collectives::all_to_all:
      reserve_zeros(size_in_bytes(exchange.from));
      return size_in_bytes(exchange.from);
  }
  return Bytes{};
}

void LoopbackCollectives::run(const Collective& collective, const Exchange& exchange,
                              const CollectivePlace& place) {
  const auto& [from, to] = std::tie(exchange.from, exchange.to);
  const std::int64_t ranks = ranks_of(exchange.group);
  const Bytes element = size_of(to.type);
  if (to.empty() && from.empty()) return;
  const auto move_and_add = [&](std::int64_t elements, std::int64_t moved) {
    if (elements == 0) return;
    const Bytes size = moved * element;
    this->exchange(place.room, place.room + size.count, size, place);
    gpu_.combine(place.stream, place.room, place.room, from.data, elements, to.type, 1, 1);
  };
  switch (collective.what) {
    case Collectives::all_reduce: {
      const std::int64_t reduced = to.count - to.count / ranks;
      move_and_add(reduced, 2 * reduced);
      return copy(to, from, place.stream);
    }
    case Collectives::broadcast: {
      const Bytes size = size_in_bytes(to);
      this->exchange(place.room, place.room + size.count, size, place);
      return copy(to, from, place.stream);
    }
    case Collectives::all_gather: {
      if (collective.reduction != Reduction::none) {
        const Piece all{from.type, place.room, ranks * from.count};
        gather(all, from, exchange.group, place);
        return add_up(to, all, ranks, false, place);
      }
      if (!(from == to)) return gather(to, from, exchange.group, place);
      // Here the parts of all are there.
      const RankPart part(to.count, exchange.group.size(), exchange.group.place);
      const Bytes others = (ranks - 1) * part.size * element;
      return this->exchange(zeros_.get(), place.room, others, place);
    }
    case Collectives::reduce_scatter: {
      const RankPart part(from.count, exchange.group.size(), exchange.group.place);
      const std::int64_t others = from.count - part.count;
      move_and_add(others, others);
      if (!(from == to)) copy(to, from.part(part.begin, part.count), place.stream);
      return;
    }
    case Collectives::all_to_all: {
      const std::int64_t part = from.count / ranks;
      return gather(to, from.part(exchange.group.place * part, part), exchange.group, place);
    }
  }
}

/// Its own part, and zeros in those of all others.
void LoopbackCollectives::gather(const Piece& to, const Piece& from, const Group& group,
                                 const CollectivePlace& place) {
  const std::int64_t begin = group.place * from.count, end = begin + from.count;
  const Piece before = to.part(0, begin), behind = to.part(end, to.count - end);
  copy(to.part(begin, from.count), from, place.stream);
  for (const Piece& others : {before, behind})
    exchange(zeros_.get(), others.data, size_in_bytes(others), place);
}

void LoopbackCollectives::exchange(const std::byte* from, std::byte* to, Bytes size,
                                   const CollectivePlace& place) {
  if (size == Bytes{}) return;
  const std::vector<GpuMessage> messages{{0, const_cast<std::byte*>(from), size, false},
                                         {0, to, size, true}};
  gpu_.exchange(place.communicator, place.stream, messages);
}

}  // namespace ddpsim
