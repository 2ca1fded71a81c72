// After the whole backward pass: all gradients into one piece of memory, one all-reduce, one
// division, and every gradient back into its place (or it stays where it is, as a view).

#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

class Flat : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override { step.add_bucket(step.used(step.works.arrival)); }

  void gradient_ready(StepBuilder& step, std::int32_t) override {
    step.gradient.front() = step.writer.last_kernel;
  }

  void after_backward(StepBuilder& step) override {
    const WorkTable& table = step.works.table;
    step.concatenate(0, table[step.works.concatenate.number]);
    step.all_reduce(0, false);
    step.wait(0);
    if (step.divides()) step.divide_bucket(0, table[step.works.flat_divide.number]);
    if (!step.training.flat_views) step.copy_out(0, step.works.copy_out);
  }
};

}  // namespace

std::unique_ptr<StrategyTasks> make_flat() {
  return std::make_unique<Flat>();
}

}  // namespace ddpsim
