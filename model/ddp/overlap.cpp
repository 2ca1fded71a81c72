// Each gradient hook all-reduces its gradient in place, asynchronously; after backward, for each
// parameter in that order: wait, divide.

#include "model/ddp/strategy_tasks.hpp"

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
    for (std::int32_t b = 0; b < step.bucket_count(); ++b) {
      step.wait(b);
      if (step.divides()) step.per_parameter(Operation::divide, step.works.divide, b);
    }
  }
};

}  // namespace

std::unique_ptr<StrategyTasks> make_overlap() {
  return std::make_unique<Overlap>();
}

}  // namespace ddpsim
