#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/execute/piece.hpp"
#include "backend/execute/streams.hpp"
#include "model/base/quantity.hpp"
#include "model/program/action.hpp"

namespace ddpsim::execute {

/// Ranks that communicate together, and this one's place among them.
struct Group {
  std::span<const std::int32_t> ranks;
  std::int32_t place = 0;

  std::size_t size() const { return ranks.size(); }
};

/// What a collective, send or receive of one rank works on.
struct Exchange {
  Group group;
  Piece from{}, to{};
  /// [place] elements of each rank; empty: they have equally many, or, where `from` is `to`, parts
  /// of ceil(elements / ranks), the last ones shorter or empty.
  std::vector<std::int64_t> counts{};
  std::uint32_t tag = 0;          ///< the same on all ranks, another for what is under way together
  std::int16_t communicator = 0;  ///< of the job, whose group it is
  std::uint8_t stream = 0;        ///< of the job, that it stands on
};

/// How a rank speaks to the others.
///
/// To implementers. The host thread calls `begin`, `start_together`, `meet`, `latest` and
/// `disconnect`; what exchanges memory is called where the rank's Streams have it, in one order by
/// all members of a group. A rank that is gone, or silent for the job's timeout, ends every call on
/// all others with a DeviceError of one line, then or in a later call.
class Link {
 public:
  virtual ~Link() = default;

  /// Why it cannot exchange numbers of this type so; empty: it can.
  virtual std::string refusal(const program::Action& action, DType type) const = 0;

  /// A run begins: makes what its collectives need. May communicate.
  virtual void begin(const Running& running) { static_cast<void>(running); }
  virtual void run(const program::Collective& collective, const Exchange& exchange) = 0;
  /// Between this rank and another, by its place in the group.
  virtual void send(std::int32_t peer, const Exchange& exchange) = 0;
  virtual void receive(std::int32_t peer, const Exchange& exchange) = 0;

  /// Returns on all ranks at one instant, which is from then on the zero of `now`.
  virtual void start_together() = 0;
  virtual Instant now() const = 0;
  /// Returns on all ranks at one instant.
  virtual void meet() = 0;
  /// The latest of every rank's k-th instant; nothing is said of an instant that not all have.
  virtual std::vector<Instant> latest(std::vector<Instant> mine) = 0;
  /// Ends every call under way on this rank with an error.
  virtual void disconnect() = 0;
};

}  // namespace ddpsim::execute
