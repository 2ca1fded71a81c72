#pragma once

#include <vector>

#include "backend/backend.hpp"
#include "model/program/operation.hpp"

namespace ddpsim {

/// A kind of collective, or of message, of one size among groups of so many ranks.
struct CollectiveCase {
  Operation operation = Operation::all_gather;
  int ranks = 2;  ///< of a group; 2 of a send/receive
  Bytes size;     ///< what each rank hands over; of an all-gather, the result

  bool operator==(const CollectiveCase&) const = default;
};

/// What each rank hands over in such a collective, a whole number of fp32 for each rank.
Bytes payload_of(const CollectiveCase& collective);

/// A job of so many ranks: `count` collectives one behind the other, each on other memory until
/// that is more than caches hold. Neighbours are a group, and all groups do the same at the same
/// time; ranks that make no whole group do nothing. The first rank of a pair sends. Throws
/// std::invalid_argument for groups of one rank, or of more than there are.
program::Job job_of_collectives(const CollectiveCase& collective, int ranks, int count);
/// The same where the host waits for each before it issues the next.
program::Job job_of_awaited_collectives(const CollectiveCase& collective, int ranks, int count);

/// Runs a job of collectives. How long each took in each group, from the last rank's arrival until
/// the last rank was done, but for the first, for which threads have yet to wake up. The same on
/// all ranks. Communicates.
std::vector<Duration> time_collectives(Backend& backend, const program::Job& job);

/// Runs a job of awaited collectives. How long each took from the end of the one before to its own,
/// the mean of this rank; of ranks that make no whole group zero.
Duration time_awaited_collectives(Backend& backend, const program::Job& job);

}  // namespace ddpsim
