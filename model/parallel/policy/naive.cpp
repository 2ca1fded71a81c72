// After the whole backward pass, for each parameter in registration order: all-reduce, wait,
// divide.

#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

class Naive : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(step.works.parameters()); ++i)
      if (!step.unused(i)) step.add_bucket({i}).in_place = true;
  }

  void gradient_ready(StepBuilder& step, std::int32_t parameter) override {
    step.gradient[at(step.bucket_of[at(parameter)])] = step.writer.last_kernel;
  }

  void after_backward(StepBuilder& step) override {
    for (std::int32_t b = 0; b < step.bucket_count(); ++b) {
      step.all_reduce(b, false);
      step.wait(b);
      if (step.divides()) step.divide_each(b, step.works.divide);
    }
  }
};

}  // namespace

std::unique_ptr<StrategyTasks> make_naive() {
  return std::make_unique<Naive>();
}

}  // namespace ddpsim
