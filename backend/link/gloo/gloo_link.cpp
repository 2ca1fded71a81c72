#include "backend/link/gloo/gloo_link.hpp"

#include <algorithm>
#include <cstring>
#include <variant>

#include <fmt/format.h>

#include "backend/link/gloo/ring.hpp"
#include "backend/link/gloo/room.hpp"

namespace ddpsim {

using execute::Exchange;
using execute::Group;
using execute::Piece;
using program::Collective;
using program::Collectives;
using program::Reduction;

namespace {

void copy(const Piece& to, const Piece& from) {
  if (to.data != from.data) std::memmove(to.data, from.data, from.bytes().size());
}

Piece part(const Piece& whole, const PartBegins& begins, std::int32_t place) {
  const std::int64_t begin = begins[at(place)];
  return whole.part(begin, begins[at(place) + 1] - begin);
}

bool overlap(const Piece& one, const Piece& other) {
  return one.data < other.data + other.bytes().size() && other.data < one.data + one.bytes().size();
}

PartBegins begins_of(const Exchange& exchange, const Piece& whole) {
  return exchange.counts.empty() ? equal_parts(whole.count, exchange.group.size())
                                 : parts_of(exchange.counts);
}

}  // namespace

std::string GlooLink::refusal(const program::Action& action, DType type) const {
  const auto* collective = std::get_if<Collective>(&action);
  if (collective == nullptr) return "";
  if (collective->reduction != Reduction::none && type != DType::fp32 && type != DType::fp16 &&
      type != DType::bf16)
    return fmt::format("Gloo's ranks do not add up {}", name_of(type));
  return "";
}

bool GlooLink::is_everyone(const Group& group) const {
  if (group.size() != static_cast<std::size_t>(connection_.ranks())) return false;
  for (std::size_t i = 0; i < group.size(); ++i)
    if (group.ranks[i] != static_cast<std::int32_t>(i)) return false;
  return true;
}

void GlooLink::run(const Collective& collective, const Exchange& exchange) {
  switch (collective.what) {
    case Collectives::all_reduce:
      return all_reduce(collective, exchange);
    case Collectives::all_gather:
      return all_gather(collective, exchange);
    case Collectives::reduce_scatter:
      return reduce_scatter(collective, exchange);
    case Collectives::broadcast:
      return broadcast(collective, exchange);
    case Collectives::all_to_all:
      return all_to_all(exchange);
  }
}

void GlooLink::all_reduce(const Collective& collective, const Exchange& exchange) {
  const Piece& values = exchange.to;
  copy(values, exchange.from);
  Communicator& communicator = connection_.communicator();
  const auto count = static_cast<std::size_t>(values.count);
  if (!is_everyone(exchange.group)) {
    const PartBegins begins = equal_parts(values.count, exchange.group.size());
    ring_reduce(communicator, exchange.group, values, begins, exchange.tag);
    ring_gather(communicator, exchange.group, values, begins, exchange.tag);
  } else if (size_of(values.type) == Bytes{2}) {
    communicator.all_reduce(
        values.type, std::span(reinterpret_cast<std::uint16_t*>(values.data), count), exchange.tag);
  } else {
    communicator.all_reduce(std::span(reinterpret_cast<float*>(values.data), count), exchange.tag);
  }
  if (collective.reduction == Reduction::mean) divide_numbers(values, exchange.group.size());
}

void GlooLink::all_gather(const Collective& collective, const Exchange& exchange) {
  Communicator& communicator = connection_.communicator();
  if (collective.reduction != Reduction::none) {  // everyone's, added up in the order of ranks
    const Room all(exchange.from.type,
                   exchange.from.count * static_cast<std::int64_t>(exchange.group.size()));
    const Exchange gathered{exchange.group, exchange.from, all.piece(), {}, exchange.tag};
    all_gather({.what = Collectives::all_gather}, gathered);
    add_up(exchange.to, all.piece());
    if (collective.reduction == Reduction::mean) divide_numbers(exchange.to, exchange.group.size());
    return;
  }
  const PartBegins begins = begins_of(exchange, exchange.to);
  const Piece mine = part(exchange.to, begins, exchange.group.place);
  const bool in_place = exchange.from == exchange.to;
  const bool of_all = exchange.counts.empty() && is_everyone(exchange.group);
  const auto ranks = static_cast<std::int64_t>(exchange.group.size());
  if (of_all && in_place && exchange.to.count % ranks == 0)
    return communicator.all_gather({}, exchange.to.bytes(), exchange.tag);
  if (of_all && !in_place) {
    const Room room(exchange.from.type,
                    overlap(exchange.from, exchange.to) ? exchange.from.count : 0);
    const Piece from = room.piece().empty() ? exchange.from : room.piece();
    copy(from, exchange.from);
    return communicator.all_gather(from.bytes(), exchange.to.bytes(), exchange.tag);
  }
  if (!in_place) copy(mine, exchange.from.part(0, mine.count));
  ring_gather(communicator, exchange.group, exchange.to, begins, exchange.tag);
}

void GlooLink::reduce_scatter(const Collective& collective, const Exchange& exchange) {
  const PartBegins begins = begins_of(exchange, exchange.from);
  const bool in_place = exchange.from == exchange.to;
  const Room room(exchange.from.type, in_place ? 0 : exchange.from.count);
  const Piece values = in_place ? exchange.from : room.piece();
  copy(values, exchange.from);
  ring_reduce(connection_.communicator(), exchange.group, values, begins, exchange.tag);
  const Piece mine = part(values, begins, exchange.group.place);
  if (collective.reduction == Reduction::mean) divide_numbers(mine, exchange.group.size());
  if (!in_place) copy(exchange.to.part(0, mine.count), mine);
}

void GlooLink::broadcast(const Collective& collective, const Exchange& exchange) {
  if (exchange.group.place == collective.root) copy(exchange.to, exchange.from);
  const std::span<std::byte> bytes = exchange.to.bytes();
  if (is_everyone(exchange.group))
    return connection_.communicator().broadcast(
        {reinterpret_cast<char*>(bytes.data()), bytes.size()}, collective.root, exchange.tag);
  tree_broadcast(connection_.communicator(), exchange.group, bytes, collective.root, exchange.tag);
}

void GlooLink::all_to_all(const Exchange& exchange) {
  const std::size_t size = exchange.group.size();
  const PartBegins begins = equal_parts(exchange.from.count, size);
  const Room room(exchange.from.type,
                  overlap(exchange.from, exchange.to) ? exchange.from.count : 0);
  const Piece from = room.piece().empty() ? exchange.from : room.piece();
  copy(from, exchange.from);
  for (std::size_t distance = 0; distance < size; ++distance) {
    const auto me = at(exchange.group.place);
    const std::size_t next = (me + distance) % size, previous = (me + size - distance) % size;
    connection_.communicator().exchange(
        {exchange.group.ranks[next], part(from, begins, static_cast<std::int32_t>(next)).bytes()},
        {exchange.group.ranks[previous],
         part(exchange.to, begins, static_cast<std::int32_t>(previous)).bytes()},
        Communicator::exchange_slot(exchange.tag));
  }
}

void GlooLink::send(std::int32_t peer, const Exchange& exchange) {
  connection_.communicator().exchange({exchange.group.ranks[at(peer)], exchange.from.bytes()}, {},
                                      Communicator::exchange_slot(exchange.tag));
}

void GlooLink::receive(std::int32_t peer, const Exchange& exchange) {
  connection_.communicator().exchange({}, {exchange.group.ranks[at(peer)], exchange.to.bytes()},
                                      Communicator::exchange_slot(exchange.tag));
}

}  // namespace ddpsim
