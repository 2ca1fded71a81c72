#pragma once

#include <cstdint>

#include "model/parallel/policy/fsdp1_layout.hpp"

namespace ddpsim {

/// What becomes of a unit's flat gradient (F72, F77). Stream "scatter": it is cast, padded, divided
/// and reduce-scattered, and the result is divided, cast back and added to what is there; with
/// replicas, what follows their all-reduce is on stream "replicate".
class FlatReductions {
 public:
  /// `group` is that of Work: the `ranks` that share a parameter, or 0 for all.
  FlatReductions(std::int32_t ranks, std::int32_t group) : ranks_(ranks), group_(group) {}

  /// Autograd's part: gradients become one, in place of those that were there, or in a later
  /// micro-batch that adds to them.
  void put_together(StepBuilder& step, const FlatUnit& unit);
  void reduce(StepBuilder& step, const FlatUnit& unit);
  /// Kernels wait for all that is under way.
  void end_backward(StepBuilder& step);

 private:
  void kernel(StepBuilder& step, StepStream on, const Work& work, const program::Action& action,
              const FlatUnit& unit, std::string_view label);
  void divide(StepBuilder& step, StepStream on, const FlatUnit& unit, const program::Slice& what,
              double divisor);
  void scatter(StepBuilder& step, const FlatUnit& unit, const program::Slice& from,
               const program::Slice& to);
  void all_reduce(StepBuilder& step, const FlatUnit& unit, const program::Slice& part);

  std::int32_t ranks_, group_;
  std::int32_t gathered_ = nobody;   ///< the kernel that made the flat gradient
  std::int32_t last_ = nobody;       ///< task of the current reduction
  std::int32_t scattered_ = nobody;  ///< the newest task of each stream
  std::int32_t replicated_ = nobody;
};

}  // namespace ddpsim
