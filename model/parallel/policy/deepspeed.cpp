// DeepSpeed's ZeRO, stages 1 and 2. All parameters lie in one flat piece, of which each rank
// updates one of W equal parts; a part may begin and end within a parameter.
//
//     reduction  gradients are copied into a bucket; one that would not fit makes the bucket reduce
//                first, and one that is larger than a bucket is reduced where it is. Reducing is:
//                divide, flatten (a copy, unless all is one rank's), all-reduce, and copy what
//                falls into the rank's part. With overlap_comm that runs on a stream of its own,
//                and at the begin of each the kernels wait for the one before.
//     stage 1    reduces once, in the last micro-batch: with overlap_comm from hooks, else when
//                backward has ended, in the order of registration.
//     stage 2    reduces in hooks in every micro-batch, and adds up what falls into its part.
//     optimizer  each step finds the norm of all gradients first, whether or not it clips by it;
//                behind it the updated parts are all-gathered, and nothing runs beside that.
//
// Source: deepspeed 0.19.8, runtime/zero/stage_1_and_2.py (rules F84-F88). It gathers all parts at
// once whatever its allgather_bucket_size is, where the backend has all_gather_into_tensor.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"
#include "model/parallel/policy/weight_part.hpp"
#include "model/parallel/policy/zero_refusals.hpp"

namespace ddpsim {
namespace {

using program::Slice;

/// Parts are of a multiple of so many elements (nccl_start_alignment_factor).
constexpr std::int64_t alignment = 2;

class DeepSpeed : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_zero(step);
    settings_ = *step.training.zero();
    const bool is_second = step.training.strategy == Strategy::zero2;
    reduces_each_ = is_second;
    reduces_in_hooks_ = is_second || settings_.overlap_comm;
    std::vector<std::int32_t> all(step.works.parameters());
    std::iota(all.begin(), all.end(), 0);
    part_ = lay_out_part(step, all, 0, 1, alignment);
    step.own_parts = {{part_.masters.empty() ? part_.mine : part_.masters, part_.gradients}};
    step.shards = step.writer.device.ranks;
    order_ = reduces_in_hooks_ ? step.works.in_backward() : step.used(all);
    plan_buckets(step);
    if (reduces_each_) step.memory.compute_in_place();
    if (reduces_each_ && step.training.micro_batches > 1)
      partial_ =
          step.writer.memory.add("partial", 0, program::Holds::gradient, type(step),
                                 part_.gradients.count, program::Life::step, program::Start::zeros);
    lay_out_rest(step);
  }

  bool keeps_gradients(const StepBuilder&) const override { return !reduces_each_; }

  void laid_out(StepBuilder& step, std::int32_t bucket) override {
    const Slice& data = step.memory.bucket(bucket);
    flattened_.push_back(is_one_ranks(step, bucket)
                             ? data
                             : step.writer.memory.add("flattened", bucket, program::Holds::bucket,
                                                      type_of(step, data), data.count));
  }

  void before_backward(StepBuilder& step) override {
    filling_ = last_ = nobody;
    if (reduces(step) && !rest_.empty()) step.writer.comes(rest_, StepStream::compute);
  }

  void gradient_ready(StepBuilder& step, std::int32_t parameter) override {
    if (!reduces(step) || !reduces_in_hooks_) return;
    step.fire_hook(parameter, step.bucket_of[at(parameter)]);
    take(step, parameter);
  }

  void after_backward(StepBuilder& step) override {
    if (!reduces(step)) return;
    if (!reduces_in_hooks_)
      for (const std::int32_t each : order_) take(step, each);
    if (filling_ != nobody) reduce(step);
    if (last_ != nobody) step.writer.await(last_);
    if (!rest_.empty()) step.writer.goes(rest_, StepStream::compute);
    if (step.writer.micro_batch > 0 && reduces_each_)
      step.writer.kernel_task(
          Operation::accumulate,
          moving(Operation::accumulate, 3 * partial_.count * size_of(type(step))),
          program::Combine{.to = part_.gradients, .left = part_.gradients, .right = partial_});
  }

  void before_optimizer(StepBuilder& step) override { find_norm(step, {part_.gradients}); }

  void after_optimizer(StepBuilder& step) override {
    cast_masters(step, part_);
    step.writer.await(gather_parts(step, part_.all, part_.mine, nobody, false));
  }

 private:
  void plan_buckets(StepBuilder& step) const {
    std::int64_t held = 0;
    std::vector<std::int32_t> filling;
    const auto close = [&] {
      if (filling.empty()) return;
      step.add_bucket(filling).in_place = held > settings_.reduce_bucket_size;
      filling.clear();
      held = 0;
    };
    for (const std::int32_t each : order_) {
      if (held + step.memory.elements(each) > settings_.reduce_bucket_size) close();
      filling.push_back(each);
      held += step.memory.elements(each);
    }
    close();
  }

  /// A bucket's memory is as large as buckets may become, and with overlap_comm there are two of
  /// them, whatever lies in them.
  void lay_out_rest(StepBuilder& step) {
    if (step.writer.device.synchronous || step.buckets.empty()) return;
    const Bytes element = size_of(step.memory.type(0));
    Bytes largest;
    for (const Bucket& each : step.buckets)
      if (!each.in_place) largest = std::max(largest, each.size);
    const Bytes all = (settings_.overlap_comm ? 2 : 1) * (settings_.reduce_bucket_size * element);
    if (all > largest)
      rest_ = step.writer.memory.bytes("rest of the buckets", nobody, program::Holds::bucket,
                                       all - largest, program::Life::held);
  }

  /// Does one rank alone own all of the bucket?
  bool is_one_ranks(const StepBuilder& step, std::int32_t bucket) const {
    std::int64_t first = part_.all.count, last = 0;
    for (const std::int32_t each : step.buckets[at(bucket)].parameters) {
      const Slice& place = part_.places[at(each)];
      first = std::min(first, place.begin / part_.mine.count);
      last = std::max(last, (place.begin + place.count - 1) / part_.mine.count);
    }
    return first >= last;
  }

  bool reduces(const StepBuilder& step) const {
    return reduces_each_ || step.writer.micro_batch + 1 == step.training.micro_batches;
  }

  void take(StepBuilder& step, std::int32_t parameter) {
    const std::int32_t bucket = step.bucket_of[at(parameter)];
    if (filling_ != nobody && filling_ != bucket) reduce(step);
    filling_ = bucket;
    if (!step.bucket(bucket).in_place)
      step.put_in(parameter, step.writer.number_of(step.works.copy_in[at(parameter)]), 1);
    step.gradient[at(bucket)] = step.writer.last_kernel;
  }

  /// The bucket that is being filled.
  void reduce(StepBuilder& step) {
    StepWriter& writer = step.writer;
    const std::int32_t bucket = filling_;
    const bool aside = settings_.overlap_comm && !writer.device.synchronous;
    if (aside && last_ != nobody) writer.await(last_, nobody);
    last_ = writer.last_kernel;
    const Slice &data = step.memory.bucket(bucket), &flattened = flattened_[at(bucket)];
    const Bytes size = data.count * size_of(type_of(step, data));
    kernel(step, aside, moving(Operation::divide, 2 * size),
           program::Scale{.to = data, .from = data, .factor = step.share()}, bucket);
    if (flattened != data)
      kernel(step, aside, moving(Operation::concatenate, 2 * size),
             program::Scale{.to = flattened, .from = data}, bucket);
    StepWriter::Sending sending;
    if (aside) sending.stream = StepStream::scatter;
    sending.work.operation = Operation::all_reduce;
    sending.work.payload = size;
    sending.work.handed_over = reduces_in_hooks_;
    sending.what.what = program::Collectives::all_reduce;
    sending.what.reduction = program::Reduction::sum;
    sending.what.from = sending.what.to = flattened;
    sending.of.group = bucket;
    sending.input = last_;
    sending.ready = aside ? step.gradient[at(bucket)] : last_;
    last_ = writer.send(sending);
    if (!aside) writer.await(last_, bucket);
    take_part(step, aside, bucket);
    if (!aside) last_ = nobody;
    filling_ = nobody;
  }

  /// Out of the whole bucket back into it, and on from there: two copies of a rank's share.
  void take_part(StepBuilder& step, bool aside, std::int32_t bucket) {
    const std::vector<std::int32_t>& parameters = step.bucket(bucket).parameters;
    std::vector<Slice> from, places;
    for (const std::int32_t each : parameters) {
      Slice slot = step.memory.slot(each);
      if (flattened_[at(bucket)] != step.memory.bucket(bucket))
        slot.buffer = flattened_[at(bucket)].buffer;
      from.push_back(slot);
      places.push_back(part_.places[at(each)]);
    }
    program::TakePart take;
    take.to = step.writer.micro_batch > 0 && reduces_each_ ? partial_ : part_.gradients;
    take.places = step.writer.memory.list(places);
    take.from = step.writer.memory.list(from);
    take.of = step.writer.communicator(0, 0);
    const Bytes share{step.bucket(bucket).size.count / step.writer.device.ranks};
    kernel(step, aside, moving(Operation::copy_out, 4 * share), take, bucket);
  }

  void kernel(StepBuilder& step, bool aside, const Work& work, const program::Action& action,
              std::int32_t bucket) {
    StepWriter& writer = step.writer;
    const program::Origin origin{.group = bucket};
    if (!aside) {
      writer.kernel_task(work.operation, work, action, origin);
    } else {
      writer.add(work.operation, StepStream::scatter, writer.number_of(work), action, origin);
      writer.depend(last_);
    }
    last_ = writer.newest();
  }

  static DType type_of(const StepBuilder& step, const Slice& slice) {
    return step.writer.memory.job.buffers[slice.buffer].type;
  }
  DType type(const StepBuilder& step) const { return type_of(step, part_.gradients); }

  ZeroSettings settings_;
  bool reduces_each_ = false;  ///< micro-batch
  bool reduces_in_hooks_ = false;
  WeightPart part_;
  Slice partial_;                    ///< of a later micro-batch's gradients the rank's part
  Slice rest_;                       ///< of the buckets, that no gradient lies in
  std::vector<std::int32_t> order_;  ///< of gradients, as they are put into buckets
  std::vector<Slice> flattened_;     ///< [bucket] what is all-reduced
  std::int32_t filling_ = nobody;    ///< the bucket
  std::int32_t last_ = nobody;       ///< the newest task of a reduction
};

}  // namespace

std::unique_ptr<StrategyTasks> make_deepspeed() {
  return std::make_unique<DeepSpeed>();
}

}  // namespace ddpsim
