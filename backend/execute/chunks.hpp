#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "backend/execute/piece.hpp"
#include "model/program/buffer.hpp"

namespace ddpsim::execute {

/// Goes over the pieces of a Chunk or an Unchunk: `each(in packed, in tensor)` for each that is not
/// empty, and `rest(in packed)` for what a piece leaves of its place. `begin` is where the slice of
/// `packed` begins in its buffer, as `places` count.
template <typename Each, typename Rest>
void each_chunk(const Piece& packed, std::int64_t begin, std::span<const program::Slice> places,
                std::span<const Piece> tensors, std::int32_t parts, Each&& each, Rest&& rest) {
  const std::int64_t part = packed.count / parts;
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::int64_t k = 0; k < parts; ++k) {
      const std::int64_t length = places[i].count;
      const std::int64_t from = std::min(k * length, tensors[i].count);
      const std::int64_t count = std::min(length, tensors[i].count - from);
      const std::int64_t place = k * part + places[i].begin - begin;
      if (count > 0) each(packed.part(place, count), tensors[i].part(from, count));
      if (count < length) rest(packed.part(place + count, length - count));
    }
}

/// Goes over what of the tensors falls into the rank's part of a TakePart, which is the `place`-th:
/// `each(in part, in tensor)` for each piece that is not empty.
template <typename Each>
void each_taken(const Piece& part, std::int64_t place, std::int64_t begin,
                std::span<const program::Slice> places, std::span<const Piece> tensors,
                Each&& each) {
  const std::int64_t mine = begin + place * part.count;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::int64_t from = std::max(places[i].begin, mine);
    const std::int64_t to = std::min(places[i].begin + tensors[i].count, mine + part.count);
    if (from < to)
      each(part.part(from - mine, to - from), tensors[i].part(from - places[i].begin, to - from));
  }
}

}  // namespace ddpsim::execute
