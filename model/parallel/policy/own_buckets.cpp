// Buckets of a wrapper of one's own, as scripts write them. Once a bucket's last gradient is there
// its hook puts the gradients into one tensor and all-reduces it at once, whatever the buckets
// before it do; after backward, in that order: wait, divide, copy every gradient back. Or first all
// waits, then the rest of all buckets (Training::wait_for_all).
//
//     flattened_buckets  torch's _flatten_dense_tensors makes a new tensor of them. A bucket of one
//                        gradient is that gradient: torch gives back the tensor itself, and a copy
//                        onto itself does nothing. So with a small cap such a wrapper copies less
//                        than DistributedDataParallel.
//     copied_buckets     each gradient is copied into a buffer that the wrapper keeps.
//
// DistributedDataParallel divides while it fills its buckets; such wrappers divide what they get.
// Source: torch/csrc/utils/tensor_flatten.h flatten_dense_tensors; aten/src/ATen/native/cuda/
// Copy.cu copy_device_to_device.

#include "model/parallel/policy/bucket_plan.hpp"
#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

class OwnBuckets : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_bucketed(step.works, step.training);
    step.buckets = plan_buckets(step.works, step.training);
    for (Bucket& bucket : step.buckets)
      bucket.in_place = step.training.flattened_buckets && bucket.parameters.size() == 1;
  }

  void before_backward(StepBuilder& step) override {
    launched_.clear();
    ready_ = 0;
    missing_.clear();
    for (const Bucket& bucket : step.buckets) missing_.push_back(bucket.parameters.size());
  }

  void gradient_ready(StepBuilder& step, std::int32_t parameter) override {
    const std::int32_t index = step.bucket_of[at(parameter)];
    step.gradient[at(index)] = step.writer.last_kernel;
    step.fire_hook(parameter, index);
    if (--missing_[at(index)] == 0) fill(step, index);
    step.mark_filled(parameter);
    // No task puts the one gradient of a flattened bucket there; and none of these waits its turn.
    if (step.training.flattened_buckets || step.works.arrival[ready_++] != parameter)
      step.others_have(BucketMarks::late);
    if (missing_[at(index)] > 0) return;
    step.all_reduce(index, true);
    launched_.push_back(index);
  }

  void after_backward(StepBuilder& step) override {
    say_what_others_do(step);
    if (step.training.wait_for_all)
      for (const std::int32_t index : launched_) step.wait(index);
    for (const std::int32_t index : launched_) {
      if (!step.training.wait_for_all) step.wait(index);
      if (step.divides())
        step.divide_bucket(
            index, moving(Operation::divide, 2 * step.bucket(index).size, Caller::python_loop));
      if (!step.bucket(index).in_place) step.copy_out(index, step.works.copy_out);
    }
  }

  /// For comparison with DistributedDataParallel, what its logger would say.
  void after_optimizer(StepBuilder& step) override { step.writer.log_iterations(); }

 private:
  static void fill(StepBuilder& step, std::int32_t index) {
    if (step.training.copied_buckets)
      copy_each(step, index);
    else if (!step.bucket(index).in_place)
      flatten(step, index);
  }

  /// Gradients are copied in when their bucket's last one is there, whichever that is.
  static void say_what_others_do(StepBuilder& step) {
    if (step.works.parameters() == 1) return;
    if (step.training.wait_for_all)
      step.others_have("a gradient is copied back apart from its wait");
    step.others_have("other kernels run under other buckets");
  }

  static void copy_each(StepBuilder& step, std::int32_t index) {
    for (const std::int32_t parameter : step.bucket(index).parameters) {
      const Work copy = moving(Operation::copy_in, 2 * step.works.gradients[at(parameter)].size,
                               Caller::python_loop);
      step.put_in(parameter, step.writer.number_of(copy), 1);
    }
    step.gradient[at(index)] = step.writer.last_kernel;
  }

  static void flatten(StepBuilder& step, std::int32_t index) {
    step.concatenate(index, copy_together(step.works, step.bucket(index).parameters));
    step.gradient[at(index)] = step.writer.last_kernel;
  }

  std::vector<std::size_t> missing_;    ///< [bucket] gradients still to come
  std::vector<std::int32_t> launched_;  ///< buckets, in that order
  std::size_t ready_ = 0;               ///< gradients so far
};

}  // namespace

std::unique_ptr<StrategyTasks> make_own_buckets() {
  return std::make_unique<OwnBuckets>();
}

}  // namespace ddpsim
