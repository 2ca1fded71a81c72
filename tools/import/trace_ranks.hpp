#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/import/torch_trace.hpp"

namespace ddpsim {

/// The traces of ranks of one job, the first one that of the profile. Borrowed.
struct RankTraces {
  const TraceFinding& first;
  const std::string& first_file;
  const std::vector<TraceFinding>& others;
  const std::vector<std::string>& other_files;  ///< as many

  std::size_t ranks() const { return others.size() + 1; }
  const TraceFinding& finding(std::size_t rank) const {
    return rank == 0 ? first : others[rank - 1];
  }
  const std::string& file(std::size_t rank) const {
    return rank == 0 ? first_file : other_files[rank - 1];
  }
};

/// How long each all-reduce of a step took one rank, in the order in which they were issued: from
/// the rank's own arrival, or from the end of an earlier one that was still under way, for Gloo has
/// two threads, and what overlaps would count twice. Not known (nothing) of one that ended no later
/// than an earlier one, or that ended as it began.
using TimesTaken = std::vector<std::optional<Duration>>;

/// [step][rank][all-reduce of gradients] how long it took the rank. Steps are those that all traces
/// have, matched by their names.
///
/// The last rank to arrive waits for nobody, so that of one all-reduce the shortest time is its
/// own, and what another rank took longer is waiting. That needs no clock that ranks share.
///
/// Throws InputError, naming the file, if a rank was alone, if a rank's steps have other
/// all-reduces than the first one's, or no step in common.
std::vector<std::vector<TimesTaken>> all_reduce_times(const RankTraces& traces);

}  // namespace ddpsim
