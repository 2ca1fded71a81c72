// Each gradient hook all-reduces its gradient in place, asynchronously; after backward, for each
// parameter in that order: wait, divide. Or first all waits, then all divisions, none of which then
// hides behind an all-reduce (Training::wait_for_all).

#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

class Overlap : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    for (const std::int32_t index : step.used(step.works.arrival))
      step.add_bucket({index}).in_place = true;
  }

  void gradient_ready(StepBuilder& step, std::int32_t parameter) override {
    const std::int32_t bucket = step.bucket_of[at(parameter)];
    step.gradient[at(bucket)] = step.writer.last_kernel;
    step.fire_hook(parameter, bucket);
    step.all_reduce(bucket, true);
  }

  void after_backward(StepBuilder& step) override {
    const std::int32_t all = step.bucket_count();
    if (step.training.wait_for_all)
      for (std::int32_t b = 0; b < all; ++b) step.wait(b);
    for (std::int32_t b = 0; b < all; ++b) {
      if (!step.training.wait_for_all) step.wait(b);
      if (step.divides()) step.divide_each(b, step.works.divide);
    }
  }
};

}  // namespace

std::unique_ptr<StrategyTasks> make_overlap() {
  return std::make_unique<Overlap>();
}

}  // namespace ddpsim
