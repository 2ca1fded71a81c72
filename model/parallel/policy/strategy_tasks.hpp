#pragma once

#include <memory>

#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// A kernel of a pass of the network.
struct PassKernel {
  program::Pass pass = program::Pass::forward;
  std::size_t layer = 0, kernel = 0;  ///< of that layer's pass
  std::int32_t number = 0;            ///< among all of the pass, in the order they run
};

/// What a strategy adds to a step. An object serves one step; the builder calls it in the order of
/// the host's walk through the step. To implement another strategy, derive in a file of its own,
/// and add a row to Strategy (strategy.hpp), a declaration below and a case to make_strategy.
/// docs/architecture.md has a whole strategy as an example.
class StrategyTasks {
 public:
  virtual ~StrategyTasks() = default;

  /// If not, no micro-batch communicates.
  virtual bool communicates() const { return true; }
  /// Makes the buckets; called before all other functions. Throws std::invalid_argument where the
  /// strategy cannot do the step.
  virtual void plan(StepBuilder&) {}
  /// Makes what else is kept of a bucket, whose memory is there now.
  virtual void laid_out(StepBuilder&, std::int32_t /*bucket*/) {}
  /// Adds what comes before the module's own forward pass, in every micro-batch.
  virtual void before_forward(StepBuilder&) {}
  /// Adds what comes before, or after, the kernels of a layer in that pass, in every micro-batch.
  virtual void before_layer(StepBuilder&, program::Pass, std::size_t /*layer*/) {}
  virtual void after_layer(StepBuilder&, program::Pass, std::size_t /*layer*/) {}
  /// Are the next two functions to be called?
  virtual bool listens_to_kernels() const { return false; }
  /// Adds what comes before, or after, a kernel in that pass, in every micro-batch. By the kernel's
  /// number StepWorks::uses tells the parameters whose modules run it. What follows a gradient that
  /// the kernel completes comes before what is added after the kernel.
  virtual void before_kernel(StepBuilder&, const PassKernel&) {}
  virtual void after_kernel(StepBuilder&, const PassKernel&) {}
  /// Adds what comes between forward and backward, in every micro-batch that communicates.
  virtual void before_backward(StepBuilder&) {}
  /// Adds what follows once a gradient is complete in its place, in a micro-batch that
  /// communicates. Called once for each gradient that is used, when the kernel that completes it
  /// has been added: in the order of StepWorks::arrival, unless that was given and is not the
  /// kernels', or hooks of the user's on several gradients hold some back (order/hook_groups.hpp).
  virtual void gradient_ready(StepBuilder&, std::int32_t /*parameter*/) {}
  /// Adds what comes after the last gradient, in every micro-batch that communicates.
  virtual void after_backward(StepBuilder&) {}
  /// Does a micro-batch find the gradients of those before it, and add to them?
  virtual bool keeps_gradients(const StepBuilder&) const { return true; }
  /// Does an optimizer run behind the last micro-batch?
  virtual bool optimizer_follows(const StepBuilder&) const { return true; }
  /// Before it.
  virtual void before_optimizer(StepBuilder&) {}
  /// Behind the kernels that find the norm of the gradients that this rank updates, to clip by it.
  virtual void norm_found(StepBuilder&) {}
  /// Behind the optimizer.
  virtual void after_optimizer(StepBuilder&) {}
  /// Does a comm hook compute aside while this backward runs?
  virtual bool computes_aside(const StepBuilder&) const { return false; }
};

std::unique_ptr<StrategyTasks> make_strategy(const Training& training);

std::unique_ptr<StrategyTasks> make_naive();
std::unique_ptr<StrategyTasks> make_flat();
std::unique_ptr<StrategyTasks> make_overlap();
std::unique_ptr<StrategyTasks> make_bucketed();
std::unique_ptr<StrategyTasks> make_own_buckets();
std::unique_ptr<StrategyTasks> make_zero_of_parameters();
std::unique_ptr<StrategyTasks> make_deepspeed();
std::unique_ptr<StrategyTasks> make_deepspeed_stage3();
std::unique_ptr<StrategyTasks> make_megatron();
std::unique_ptr<StrategyTasks> make_fsdp();
std::unique_ptr<StrategyTasks> make_fsdp1();

}  // namespace ddpsim
