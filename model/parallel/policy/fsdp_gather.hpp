#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/parallel/policy/fsdp_layout.hpp"

namespace ddpsim {

/// A unit while a step is written.
struct StepUnit : ShardedUnit {
  bool is_whole = false;
  bool is_among_neighbours = false;    ///< the rank holds its part for them
  std::int32_t gathering = nobody;     ///< the all-gather that is under way
  std::int32_t resharded_by = nobody;  ///< the last kernel that copied a part for neighbours
  bool had_pre_backward = false;
};

/// Where a task of shards runs. On a synchronous device copies run on the host.
StepStream stream_of_shards(const StepBuilder& step, StepStream on_gpus);

DType type_of(const StepBuilder& step, const program::Slice& slice);

/// F67: a copy between the host's memory and the device's, with CPU offload.
Work copy_beside_host(const StepBuilder& step, Operation operation, std::int64_t elements,
                      DType type);

/// The origin of a unit's task with that label.
program::Origin origin_of(StepBuilder& step, const ShardedUnit& unit, std::string_view label);

/// How units become whole and are freed: packing of parts (stream "copy in"), all-gathers (stream
/// "gather"), copies out and what neighbours keep (compute).
class FsdpGathers {
 public:
  /// `group` is that of Work: the `ranks` that share a parameter, or 0 for all.
  FsdpGathers(std::int32_t ranks, std::int32_t group) : ranks_(ranks), group_(group) {}

  /// F19: gathers of this pass wait for what kernels have done so far.
  void begin_forward(StepBuilder& step);
  /// F11, F12, F13: issues the all-gather of a unit that is not whole, unless it is under way.
  void gather(StepBuilder& step, StepUnit& unit);
  /// F15, F21, F22: what gathers filled becomes whole parameters. The streams of gathers wait for
  /// the copy-out before this one, and the memory of that one's gather is free then.
  void copy_out_in_forward(StepBuilder& step, StepUnit& unit);
  /// F31: the streams of gathers wait for this copy-out.
  void copy_out_in_backward(StepBuilder& step, StepUnit& unit);
  /// F24, F30: frees whole parameters, once neighbours have copied their parts if they keep any.
  void reshard(StepBuilder& step, StepUnit& unit);
  /// F24: the last gather's memory is free.
  void end_forward(StepBuilder& step);
  /// Frees whole parameters, or what neighbours keep of them.
  void free(StepBuilder& step, StepUnit& unit);
  /// A gather that nobody waited for ends, and its memory is free.
  void drop(StepBuilder& step, StepUnit& unit);

 private:
  void copy_to_device(StepBuilder& step, const StepUnit& unit, std::vector<program::Slice>& parts);
  void cast(StepBuilder& step, const StepUnit& unit, std::vector<program::Slice>& parts);
  void copy_out(StepBuilder& step, StepUnit& unit);
  void let_go_of_gathered(StepBuilder& step);
  void behind_gate(StepBuilder& step) const {
    if (gate_ != nobody) step.writer.depend(gate_);
  }

  std::int32_t ranks_, group_;
  std::int32_t gate_ = nobody;  ///< the task that the next copy-in waits for
  std::int32_t last_copy_out_ = nobody;
  const StepUnit* gathered_ = nullptr;  ///< whose gathered parameters are still held in forward
};

}  // namespace ddpsim
