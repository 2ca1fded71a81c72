#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "model/parallel/policy/fsdp_gather.hpp"

namespace ddpsim {

/// Do several groups of ranks have a replica each?
bool replicates(const StepBuilder& step);
/// Where kernels run on what all ranks' gradients have been reduced to.
StepStream behind_sums(const StepBuilder& step);

/// What becomes of a unit's gradients: packed (compute), reduce-scattered (stream "scatter") and
/// all-reduced among replicas (stream "replicate"); or, in a micro-batch that does not communicate,
/// kept whole, in `reduce_dtype`.
class FsdpReductions {
 public:
  /// `group` is that of Work: the `ranks` that share a parameter, or 0 for all.
  FsdpReductions(std::int32_t ranks, std::int32_t group) : ranks_(ranks), group_(group) {}

  /// F51: where a micro-batch does not communicate, its gradients are cast to the type in which
  /// they will be sent, if that is another one. Throws std::invalid_argument where some are and
  /// others are not.
  void find_upcasts(StepBuilder& step, const std::vector<StepUnit>& units);
  bool upcasts() const { return upcasts_; }
  /// What the first micro-batch does with its gradients.
  void upcast(StepBuilder& step, const StepUnit& unit);
  /// What a later one does.
  void add_up(StepBuilder& step, const StepUnit& unit);

  /// F36, F45, F55.
  void reduce_scatter(StepBuilder& step, StepUnit& unit);
  /// F40: kernels wait for all that is under way, and its memory is free.
  void end_backward(StepBuilder& step);

 private:
  void wait_for_oldest_inputs(StepBuilder& step);
  void pack(StepBuilder& step, const StepUnit& unit);
  void scatter(StepBuilder& step, StepUnit& unit, const program::Slice& received, bool divides);
  void all_reduce(StepBuilder& step, const StepUnit& unit, const program::Slice& part,
                  bool divides);
  void add_to_sum(StepBuilder& step, const StepUnit& unit, const program::Slice& received);
  void copy_to_host(StepBuilder& step, const StepUnit& unit);
  void divide(StepBuilder& step, const StepUnit& unit, const program::Slice& what, double divisor,
              StepStream on);
  void behind(StepBuilder& step, StepStream on, const Work& work, const program::Action& action,
              const program::Origin& origin);

  std::int32_t ranks_, group_;
  std::deque<StepUnit*> inputs_;  ///< of reduce-scatters, still held
  std::deque<std::int32_t> scattering_;
  std::int32_t packed_ = nobody;          ///< the task that made the newest of these inputs
  std::int32_t last_scattered_ = nobody;  ///< the newest task of a reduce-scatter
  std::vector<program::Slice> reduced_;   ///< what all-reduces worked on, still held
  std::int32_t copied_ = nobody;          ///< the newest copy of a gradient to the host
  bool upcasts_ = false;  ///< gradients wait for the last micro-batch in another type
  std::vector<program::Slice> added_up_;  ///< [parameter] in that type; empty: nothing waits
};

}  // namespace ddpsim
