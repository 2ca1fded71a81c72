#pragma once

#include <cstdint>
#include <vector>

#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Parameters that lie in one piece on every rank, of which each updates one of W equal parts, cut
/// by elements: a part may begin and end within a parameter.
struct WeightPart {
  std::vector<std::int32_t> parameters;  ///< as they lie
  std::vector<program::Slice> places;    ///< theirs in the piece
  program::Slice all;                    ///< the piece, with what is added to its end
  program::Slice mine;                   ///< the rank's part of it
  program::Slice gradients;              ///< the mean gradient of that part, for the optimizer
  program::Slice masters;  ///< that part in the type that is updated; empty: it is updated itself
};

/// Lays the parameters, which are of one type, in a piece; `index` says which of a job's. Each
/// begins at a multiple of `align` elements, and the end is at one of `multiple` times the ranks.
/// Their gradients are found in `gradients`: if it is empty, in memory that begins with zeros,
/// which is made where any of them is used.
WeightPart lay_out_part(StepBuilder& step, const std::vector<std::int32_t>& parameters,
                        std::int32_t index, std::int64_t align, std::int64_t multiple,
                        const program::Slice& gradients = {});

/// Each rank has the norm of its part: one number is added up.
void add_up_norm(StepBuilder& step);

/// As DeepSpeed does before each update: the norm of these gradients, which are the rank's parts,
/// and of all ranks'. Clipping by it costs what it does besides.
void find_norm(StepBuilder& step, const std::vector<program::Slice>& gradients);

/// Behind the update: the updated masters become parameters again, in their type.
void cast_masters(StepBuilder& step, const WeightPart& part);

/// All ranks' parts of the piece, in place. Returns the task that has the result.
std::int32_t gather_parts(StepBuilder& step, const program::Slice& all, const program::Slice& mine,
                          std::int32_t group, bool handed_over);

}  // namespace ddpsim
