// Megatron-LM's distributed optimizer. Parameters and gradients lie in buckets, in the reverse
// order of registration; a bucket is closed when it reaches its size. Of each bucket a rank updates
// one of W equal parts.
//
//     backward   gradients are computed where they lie in their bucket. When the last micro-batch's
//                are all there: scale, and reduce-scatter in place. With overlap_grad_reduce a hook
//                does that for each bucket; without it all is one bucket, reduced when backward has
//                ended. All are waited for behind backward.
//     forward    with overlap_param_gather a bucket is gathered, in place, before the first module
//                that has a parameter of it, one bucket ahead. Without it all are gathered behind
//                the optimizer.
//
// Source: megatron/core/distributed/param_and_grad_buffer.py, distributed_data_parallel.py (rules
// F93-F98).

#include <algorithm>
#include <numeric>

#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"
#include "model/parallel/policy/weight_part.hpp"
#include "model/parallel/policy/zero_refusals.hpp"

namespace ddpsim {
namespace {

using program::Slice;

constexpr std::int64_t parameter_alignment = 64, bucket_alignment = 128;

class Megatron : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_zero(step);
    settings_ = *step.training.zero();
    const int ranks = step.writer.device.ranks;
    plan_buckets(step);
    step.shards = ranks;
    for (Bucket& each : step.buckets) {
      each.views = true;
      each.align = parameter_alignment;
      each.multiple = multiple(ranks) * ranks;
    }
    first_here_.resize(step.works.layers.size());
  }

  void laid_out(StepBuilder& step, std::int32_t bucket) override {
    const std::int32_t first = step.bucket(bucket).parameters.front();
    const Slice& data = step.memory.bucket(bucket);
    const int ranks = step.writer.device.ranks;
    const Slice gradients{data.buffer, step.writer.communicator(0, 0), 0, data.count / ranks};
    const bool casts = step.memory.kept_type(first) != step.memory.type(first);
    parts_.push_back(lay_out_part(step, step.bucket(bucket).parameters, bucket, parameter_alignment,
                                  multiple(ranks), casts ? Slice{} : gradients));
    reduced_.push_back(gradients);
    const WeightPart& part = parts_.back();
    step.own_parts.push_back({part.masters.empty() ? part.mine : part.masters, part.gradients});
    if (!settings_.overlap_param_gather) return;
    std::size_t earliest = first_here_.size();
    for (const std::int32_t each : step.bucket(bucket).parameters)
      earliest = std::min(earliest, step.works.uses[at(each)].layer);
    first_here_[earliest].push_back(bucket);
  }

  void before_forward(StepBuilder& step) override {
    if (!settings_.overlap_param_gather || step.writer.micro_batch > 0) return;
    gathering_.assign(parts_.size(), nobody);
    if (!parts_.empty()) gather(step, step.bucket_count() - 1);
  }

  void before_layer(StepBuilder& step, program::Pass pass, std::size_t layer) override {
    if (pass != program::Pass::forward || !settings_.overlap_param_gather ||
        step.writer.micro_batch > 0)
      return;
    for (const std::int32_t bucket : first_here_[layer]) {
      if (gathering_[at(bucket)] == nobody) gather(step, bucket);
      step.writer.await(gathering_[at(bucket)], bucket);
      if (bucket > 0 && gathering_[at(bucket - 1)] == nobody) gather(step, bucket - 1);
    }
  }

  void before_backward(StepBuilder& step) override {
    missing_.clear();
    for (const Bucket& each : step.buckets) missing_.push_back(each.parameters.size());
    launched_.clear();
  }

  void gradient_ready(StepBuilder& step, std::int32_t parameter) override {
    if (!reduces(step)) return;
    const std::int32_t bucket = step.bucket_of[at(parameter)];
    step.gradient[at(bucket)] = step.writer.last_kernel;
    step.fire_hook(parameter, bucket);
    if (--missing_[at(bucket)] == 0 && settings_.overlap_grad_reduce) reduce(step, bucket);
  }

  void after_backward(StepBuilder& step) override {
    if (!reduces(step)) return;
    if (!settings_.overlap_grad_reduce)
      for (std::int32_t b = 0; b < step.bucket_count(); ++b) reduce(step, b);
    for (const std::int32_t bucket : launched_) {
      step.writer.await(step.launched[at(bucket)], bucket);
      to_masters_type(step, bucket);
    }
  }

  void norm_found(StepBuilder& step) override { add_up_norm(step); }

  void after_optimizer(StepBuilder& step) override {
    for (const WeightPart& each : parts_) cast_masters(step, each);
    if (settings_.overlap_param_gather) return;
    std::vector<std::int32_t> sent;
    for (std::int32_t b = 0; b < step.bucket_count(); ++b)
      sent.push_back(gather_parts(step, parts_[at(b)].all, parts_[at(b)].mine, b, false));
    for (const std::int32_t each : sent) step.writer.await(each);
  }

 private:
  /// Elements of a rank's part of a bucket are a multiple of it.
  static std::int64_t multiple(std::int64_t ranks) {
    return std::lcm(ranks, bucket_alignment) / ranks;
  }

  void plan_buckets(StepBuilder& step) const {
    const std::int64_t ranks = step.writer.device.ranks;
    const std::int64_t most =
        settings_.ddp_bucket_size.value_or(std::max<std::int64_t>(40'000'000, 1'000'000 * ranks));
    std::vector<std::int32_t> filling;
    std::int64_t held = 0;
    for (std::size_t p = step.works.parameters(); p-- > 0;) {
      const auto parameter = static_cast<std::int32_t>(p);
      if (step.unused(parameter)) continue;
      filling.push_back(parameter);
      held += step.memory.elements(parameter);
      if (!settings_.overlap_grad_reduce || held < most) continue;
      step.add_bucket(filling);
      filling.clear();
      held = 0;
    }
    if (!filling.empty()) step.add_bucket(filling);
  }

  static bool reduces(const StepBuilder& step) {
    return step.writer.micro_batch + 1 == step.training.micro_batches;
  }

  void gather(StepBuilder& step, std::int32_t bucket) {
    gathering_[at(bucket)] =
        gather_parts(step, parts_[at(bucket)].all, parts_[at(bucket)].mine, bucket, true);
  }

  void reduce(StepBuilder& step, std::int32_t bucket) {
    StepWriter& writer = step.writer;
    const Slice& data = step.memory.bucket(bucket);
    const Bytes size = size_of(writer.memory.job, data);
    if (!settings_.average_in_collective)
      writer.kernel_task(Operation::divide, moving(Operation::divide, 2 * size),
                         program::Scale{.to = data, .from = data, .factor = step.share()},
                         {.group = bucket});
    StepWriter::Sending sending;
    sending.work.operation = Operation::reduce_scatter;
    sending.work.payload = size;
    sending.work.handed_over = settings_.overlap_grad_reduce;
    sending.what.what = program::Collectives::reduce_scatter;
    sending.what.reduction =
        settings_.average_in_collective ? program::Reduction::mean : program::Reduction::sum;
    sending.what.from = sending.what.to = data;
    sending.of.group = bucket;
    sending.input = writer.last_kernel;
    sending.ready = step.gradient[at(bucket)];
    step.launched[at(bucket)] = writer.send(sending);
    launched_.push_back(bucket);
  }

  /// The optimizer takes gradients in the type of masters.
  void to_masters_type(StepBuilder& step, std::int32_t bucket) const {
    const WeightPart& part = parts_[at(bucket)];
    const Slice& from = reduced_[at(bucket)];
    if (part.gradients == from) return;
    const program::Job& job = step.writer.memory.job;
    step.writer.kernel_task(
        Operation::cast, moving(Operation::cast, size_of(job, from) + size_of(job, part.gradients)),
        program::Cast{.to = part.gradients, .from = from}, {.group = bucket});
  }

  ZeroSettings settings_;
  std::vector<WeightPart> parts_;                      ///< [bucket]
  std::vector<Slice> reduced_;                         ///< [bucket] the rank's part of it
  std::vector<std::vector<std::int32_t>> first_here_;  ///< [layer] buckets that it is the first of
  std::vector<std::int32_t> gathering_;                ///< [bucket] its all-gather, of this step
  std::vector<std::size_t> missing_;                   ///< [bucket] gradients still to come
  std::vector<std::int32_t> launched_;                 ///< buckets, in that order
};

}  // namespace

std::unique_ptr<StrategyTasks> make_megatron() {
  return std::make_unique<Megatron>();
}

}  // namespace ddpsim
