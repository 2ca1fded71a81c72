// Buckets of a wrapper of one's own, as scripts write them around torch's _flatten_dense_tensors
// (Training::flattened_buckets): once a bucket's last gradient is there its hook makes one tensor
// of them all and all-reduces it at once, whatever the buckets before it do; after backward, in
// that order: wait, divide, copy every gradient back.
//
// A bucket of one gradient is that gradient: torch gives back the tensor itself, and a copy onto
// itself does nothing. So with a small cap such a wrapper copies less than DistributedDataParallel.
// Source: torch/csrc/utils/tensor_flatten.h flatten_dense_tensors; aten/src/ATen/native/cuda/
// Copy.cu copy_device_to_device.

#include "model/ddp/bucket_plan.hpp"
#include "model/ddp/strategy_tasks.hpp"

namespace ddpsim {
namespace {

class Flattened : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    step.buckets() = plan_buckets(step.works, step.training);
    for (Bucket& bucket : step.buckets()) bucket.in_place = bucket.parameters.size() == 1;
  }

  void before_backward(StepBuilder& step) override {
    launched_.clear();
    missing_.clear();
    for (const Bucket& bucket : step.buckets()) missing_.push_back(bucket.parameters.size());
  }

  void gradient_ready(StepBuilder& step, std::int32_t parameter) override {
    const std::int32_t index = step.bucket_of[at(parameter)];
    step.gradient[at(index)] = step.writer.last_kernel;
    step.fire_hook(parameter, index);
    if (--missing_[at(index)] > 0) return;
    const Bucket& bucket = step.bucket(index);
    ScheduleWriter& writer = step.writer;
    if (!bucket.in_place) {
      const Work flatten = copy_together(step.works, bucket.parameters);
      writer.kernel_task(Operation::concatenate, writer.number_of(flatten)).bucket = index;
      step.gradient[at(index)] = writer.last_kernel;
    }
    step.all_reduce(index, true);
    launched_.push_back(index);
  }

  void after_backward(StepBuilder& step) override {
    ScheduleWriter& writer = step.writer;
    for (const std::int32_t index : launched_) {
      step.wait(index);
      const Bucket& bucket = step.bucket(index);
      if (step.divides()) {
        const Work division = moving(Operation::divide, 2 * bucket.size, Caller::python_loop);
        Task& divide = writer.kernel_task(Operation::divide, writer.number_of(division));
        divide.bucket = index;
        divide.divisor = step.divisor();
      }
      if (!bucket.in_place) step.per_parameter(Operation::copy_out, step.works.copy_out, index);
    }
  }

 private:
  std::vector<std::size_t> missing_;    ///< [bucket] gradients still to come
  std::vector<std::int32_t> launched_;  ///< buckets, in that order
};

}  // namespace

std::unique_ptr<StrategyTasks> make_flattened() {
  return std::make_unique<Flattened>();
}

}  // namespace ddpsim
