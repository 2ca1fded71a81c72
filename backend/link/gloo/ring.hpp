#pragma once

#include <cstdint>
#include <vector>

#include "backend/execute/link.hpp"
#include "backend/job/communicator.hpp"

namespace ddpsim {

/// Where the parts of the ranks of a group begin, in elements, and where the last one ends.
using PartBegins = std::vector<std::int64_t>;
/// Parts of ceil(elements / ranks), the last ones shorter or empty.
PartBegins equal_parts(std::int64_t elements, std::size_t ranks);
/// Parts of so many elements each.
PartBegins parts_of(const std::vector<std::int64_t>& counts);

// Rings over a group. `values` has the parts of all ranks.
//
// Sums travel once around the ring: part k from the rank behind k on, and every rank adds its own.

/// Afterwards this rank's part is the sum of everyone's; the others are no longer anything.
void ring_reduce(Communicator& communicator, const execute::Group& group,
                 const execute::Piece& values, const PartBegins& begins, std::uint32_t tag);
/// Afterwards every part is what its rank had there.
void ring_gather(Communicator& communicator, const execute::Group& group,
                 const execute::Piece& values, const PartBegins& begins, std::uint32_t tag);

/// The bytes of the rank at place `root` to all of the group: each rank that has them passes them
/// on, twice as many in each round.
void tree_broadcast(Communicator& communicator, const execute::Group& group,
                    std::span<std::byte> bytes, std::int32_t root, std::uint32_t tag);

/// into += from, numbers of fp32, fp16 or bf16, each sum rounded.
void add_numbers(const execute::Piece& into, const execute::Piece& from);
/// sum = all of `parts`, as long as `sum` each, in their order; rounded once.
void add_up(const execute::Piece& sum, const execute::Piece& parts);
/// values /= divisor
void divide_numbers(const execute::Piece& values, std::size_t divisor);

}  // namespace ddpsim
