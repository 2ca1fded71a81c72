#pragma once

#include <cstdint>
#include <vector>

#include "model/program/action.hpp"
#include "model/program/job.hpp"

namespace ddpsim::program {

/// Where what a job's deeds name comes to lie in another job.
struct Renumbering {
  std::vector<BufferId> buffers{};                      ///< [buffer]
  std::vector<std::int16_t> communicators{}, labels{};  ///< [communicator], [label]
  std::uint32_t slices = 0;                             ///< ranges of operands move on by so many
};

/// A slice or an action as the other job names it. What is nobody's stays so.
Slice renumbered(Slice slice, const Renumbering& numbers);
Action renumbered(Action action, const Renumbering& numbers);

}  // namespace ddpsim::program
