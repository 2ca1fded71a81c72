#pragma once

#include <vector>

#include "model/program/job.hpp"

namespace ddpsim::program {

/// What a deed reads and writes, in the order its action names them; empty slices left out. What it
/// changes in place stands in both. `place`: the rank's in the group of a broadcast's communicator,
/// whose root alone reads.
struct Accesses {
  std::vector<Slice> reads, writes;
};
void find_accesses(const Action& action, const Actions& actions, std::int32_t place,
                   Accesses& found);  ///< takes the place of what `found` had
Accesses accesses_of(const Action& action, const Actions& actions, std::int32_t place = nobody);

}  // namespace ddpsim::program
