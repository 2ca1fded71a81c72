#pragma once

#include <cstdint>
#include <vector>

#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {

/// A module, known by the names of its parameters.
struct TracedModule {
  std::vector<std::int32_t> parameters;  ///< its own, without those of modules in it
  KernelRange forward, backward;         ///< as in ParameterUse, with modules in it
};

/// What DeepSpeed's stage 3 has whole at a time. It knows in which order modules run, forward and
/// then backward (the trace), and which parameters they use in that order (the queue). A module
/// that begins has what is missing of its own gathered, takes it out of the queue, and then has as
/// much of the queue gathered ahead as settings allow. Behind a module goes what the trace does not
/// use again soon, but for parameters that gathering ahead has passed by because they were there.
///
/// Source: deepspeed 0.19.8, runtime/zero/partitioned_param_coordinator.py (rules F89-F91).
class ModuleTrace {
 public:
  ModuleTrace() = default;
  ModuleTrace(const StepWorks& works, const ZeroSettings& settings);

  /// As the forward pass comes to them, one that contains others before these.
  const std::vector<TracedModule>& modules() const { return modules_; }
  bool persists(std::int32_t parameter) const { return persists_[at(parameter)]; }

  /// Gradients as hooks take them: module by module, those of one in the order of registration.
  /// (Linear layers are of DeepSpeed's own function, which gives the weight's first.)
  const std::vector<std::vector<std::int32_t>>& turns() const { return turns_; }
  std::size_t turn_of(std::int32_t gradient) const { return turn_of_[at(gradient)]; }

  /// A forward pass and its backward pass.
  void begin();
  /// The next module that begins before that kernel, and the next one that ends behind it; null:
  /// none does. Between two calls of `begins` comes one of `gathered_ahead`.
  const TracedModule* begins(const PassKernel& kernel) const;
  const TracedModule* ends(const PassKernel& kernel);

  /// What has to be gathered for a module that begins, and is there from now on.
  std::vector<std::int32_t> gathered_for(const TracedModule& module);
  /// What is gathered ahead behind that.
  std::vector<std::int32_t> gathered_ahead(const TracedModule& module);
  /// What of a module that ends is not there any more.
  std::vector<std::int32_t> released(const TracedModule& module);

 private:
  struct Queued {
    std::int32_t parameter = nobody;
    std::int64_t used_at = 0;  ///< place in the trace
  };

  void find_modules(const StepWorks& works);
  void find_orders(const std::vector<std::size_t>& depths);
  void find_turns(const StepWorks& works);
  bool is_due(std::size_t place, const std::vector<std::size_t>& order, const PassKernel& kernel,
              int KernelRange::*bound) const;
  void take_out_of_queue(const TracedModule& module);
  void is_gathered(std::int32_t parameter) {
    is_there_[at(parameter)] = true;
    live_ += elements_[at(parameter)];
  }

  ZeroSettings settings_;
  std::vector<TracedModule> modules_;
  std::vector<std::size_t> trace_;  ///< modules as they begin, forward and then backward
  std::vector<std::size_t> ends_;   ///< likewise as they end
  std::vector<Queued> queue_;       ///< what the trace uses, in order
  std::vector<std::vector<std::int32_t>> turns_;
  // [parameter]
  std::vector<std::int64_t> elements_;
  std::vector<bool> persists_, is_there_;
  std::vector<std::size_t> module_of_, turn_of_;
  std::vector<std::int64_t> passed_;  ///< the last use that the queue has passed by; -1: none

  std::size_t next_ = 0, next_end_ = 0;  ///< places in trace_, ends_
  std::size_t next_in_queue_ = 0;        ///< the first that was not gathered, or passed by
  std::int64_t live_ = 0;                ///< elements of parameters that are whole for a while
};

}  // namespace ddpsim
