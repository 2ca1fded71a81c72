// After the whole backward pass: all gradients into one piece of memory, one all-reduce, one
// division, and every gradient back into its place (or it stays where it is, as a view).

#include "model/ddp/strategy_tasks.hpp"

namespace ddpsim {
namespace {

class Flat : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    step.add_bucket(step.used(step.works.arrival)).holds_gradients = step.training.flat_views;
  }

  void gradient_ready(StepBuilder& step, std::int32_t) override {
    step.gradient.front() = step.writer.last_kernel;
  }

  void after_backward(StepBuilder& step) override {
    step.writer.kernel_task(Operation::concatenate, step.works.concatenate).bucket = 0;
    step.all_reduce(0, false);
    step.wait(0);
    if (step.divides()) {
      Task& divide = step.writer.kernel_task(Operation::divide, step.works.flat_divide);
      divide.bucket = 0;
      divide.divisor = step.divisor();
    }
    if (!step.training.flat_views) step.per_parameter(Operation::copy_out, step.works.copy_out, 0);
  }
};

}  // namespace

std::unique_ptr<StrategyTasks> make_flat() {
  return std::make_unique<Flat>();
}

}  // namespace ddpsim
