// DistributedDataParallel: each hook copies gradient x 1/W into its bucket; a bucket is launched
// when it is full and every earlier one has been; after backward, bucket by bucket: wait, copy back
// (not with gradient_as_bucket_view). Before forward it broadcasts buffers, if the workload has
// any.
//
// A parameter that no gradient reaches is ready, as zeros, at the first hook, and not copied back.
// A bucket of one sparse gradient is three all-gathers, as Gloo has it, and no copies.
// Source: pytorch reducer.cpp, distributed.py, join.py; rules R8-R10, R16-R24 and R26-R36.

#include <algorithm>

#include <fmt/format.h>

#include "model/ddp/before_forward.hpp"
#include "model/ddp/bucket_plan.hpp"
#include "model/ddp/hooked_buckets.hpp"
#include "model/ddp/iteration.hpp"
#include "model/ddp/message_sizes.hpp"
#include "model/ddp/strategy_tasks.hpp"

namespace ddpsim {
namespace {

/// All parameters in one piece, averaged (PeriodicModelAverager).
/// Source: torch/distributed/algorithms/model_averaging/utils.py average_parameters.
void average_models(StepBuilder& step) {
  ScheduleWriter& writer = step.writer;
  const auto prepare = [&](Operation operation) -> Task& {
    Work work = moving(operation, 2 * step.works.gradient_size);
    work.message = Message::parameters;
    return writer.kernel_task(operation, writer.number_of(work));
  };
  prepare(Operation::concatenate);
  prepare(Operation::divide).divisor = step.divisor();
  if (!writer.device.synchronous) writer.host_reads(writer.last_kernel);
  writer.await(
      writer.announce(Operation::all_reduce, Message::parameters, step.works.gradient_size));
}

class Bucketed : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    step.buckets() = plan_buckets(step.works, step.training);
    in_turn_ = step.buckets().size();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(step.works.parameters()); ++i)
      if (step.unused(i) && !is_delayed(step, i)) unused_.push_back(i);
    if (step.training.delayed) step.add_bucket(step.training.delayed->parameters).delayed = true;
    if (step.training.comm_hook) hooked_.plan(step, in_turn_);
  }

  void before_forward(StepBuilder& step) override {
    active_ranks_ = announce_before_forward(step, static_cast<std::int64_t>(in_turn_));
  }

  void before_backward(StepBuilder& step) override {
    if (searches(step)) {
      Work work;
      work.operation = Operation::search_unused;
      work.launches = step.works.operations;
      step.writer.host_task(Operation::search_unused, work);
    }
    next_ = 0;
    marked_unused_ = false;
    used_map_ = nobody;
    missing_.clear();
    for (const Bucket& bucket : std::span(step.buckets()).first(in_turn_))
      missing_.push_back(bucket.parameters.size());
  }

  void gradient_ready(StepBuilder& step, std::int32_t parameter) override {
    if (is_delayed(step, parameter)) return;
    if (step.training.delayed && step.training.delayed->hook == parameter) send_delayed(step);
    const std::int32_t bucket = step.bucket_of[at(parameter)];
    step.gradient[at(bucket)] = step.writer.last_kernel;
    step.fire_hook(parameter, bucket);
    if (delays_all_reduce(step.training)) return;
    if (!marked_unused_) {
      read_active_ranks(step);
      for (const std::int32_t each : unused_) ready(step, each);
    }
    marked_unused_ = true;
    ready(step, parameter);
  }

  void after_backward(StepBuilder& step) override {
    if (delays_all_reduce(step.training)) communicate_late(step);
    finalize(step);
  }

  bool optimizer_follows(const StepBuilder& step) const override {
    return !updates_parameters(step.training.comm_hook.kind);
  }

  void after_optimizer(StepBuilder& step) override {
    if (averages_models(step.training)) average_models(step);
  }

  bool computes_aside(const StepBuilder& step) const override {
    return !delays_all_reduce(step.training) && hooked_.computes_aside(step);
  }

 private:
  static bool is_delayed(const StepBuilder& step, std::int32_t parameter) {
    return step.training.delayed && step.training.delayed->contains(parameter);
  }
  static bool searches(const StepBuilder& step) {
    return step.training.find_unused_parameters && !step.training.static_graph;
  }

  /// With uneven inputs, gradients are divided by the ranks that have some, which the host reads.
  void read_active_ranks(StepBuilder& step) const {
    if (step.training.join && !step.training.join->divide_by_initial_world_size)
      step.writer.host_reads(active_ranks_);
  }

  /// The user's hook on a gradient that is about to be DDP's: it divides the buffer that DDP does
  /// not reduce, and sends it (rule R50).
  void send_delayed(StepBuilder& step) {
    const std::int32_t bucket = step.bucket_count() - 1;
    Work work = moving(Operation::divide, 2 * step.bucket(bucket).size);
    work.hook_calls = 1;
    Task& divide = step.writer.kernel_task(Operation::divide, step.writer.number_of(work));
    divide.bucket = bucket;
    divide.divisor = step.divisor();
    step.gradient[at(bucket)] = step.writer.last_kernel;
    step.all_reduce(bucket, true);
  }

  /// A parameter's part of its bucket is in place: launches what is full and has its turn.
  void ready(StepBuilder& step, std::int32_t parameter) {
    const std::int32_t bucket = step.bucket_of[at(parameter)];
    fill(step, parameter);
    if (--missing_[at(bucket)] == 0) fill_together(step, bucket);
    while (next_ < in_turn_ && missing_[next_] == 0) {
      launch(step, static_cast<std::int32_t>(next_));
      ++next_;
    }
    if (next_ == in_turn_ && searches(step)) send_used_map(step);
  }

  /// Puts a gradient into its bucket as DDP's reducer does (reducer.cpp,
  /// mark_variable_ready_dense).
  void fill(StepBuilder& step, std::int32_t parameter) const {
    const std::int32_t bucket = step.bucket_of[at(parameter)];
    const bool unused = step.unused(parameter);
    const auto one = [&](Operation operation, KnownWork work) {
      Task& task = step.writer.kernel_task(operation, work);
      task.parameter = parameter;
      task.bucket = bucket;
      // A hook divides itself.
      if (!step.training.comm_hook && step.divides()) task.divisor = step.divisor();
    };
    if (step.bucket(bucket).sparse && !unused)
      one(Operation::divide, step.works.copy_in[at(parameter)]);
    else if (fills_together(step) && !unused)
      return;
    else if (!is_view(step) || unused)
      one(Operation::copy_in, step.works.copy_in[at(parameter)]);
    else if (!step.training.comm_hook && step.divides())
      one(Operation::divide, step.works.divide_in_bucket[at(parameter)]);
    step.gradient[at(bucket)] = step.writer.last_kernel;
  }

  static bool fills_together(const StepBuilder& step) {
    return step.training.batched_grad_copy && !step.training.comm_hook;
  }

  /// All gradients of a bucket at once (rule R25); unused ones have been filled with zeros.
  void fill_together(StepBuilder& step, std::int32_t index) const {
    const Bucket& bucket = step.bucket(index);
    const std::vector<std::int32_t> filled = step.used(bucket.parameters);
    if (!fills_together(step) || bucket.sparse || filled.empty()) return;
    ScheduleWriter& writer = step.writer;
    if (!is_view(step))
      writer
          .kernel_task(Operation::concatenate, writer.number_of(copy_together(step.works, filled)))
          .bucket = index;
    if (step.divides()) {
      const Work division = moving(Operation::divide, 2 * bucket.size);
      Task& divide = writer.kernel_task(Operation::divide, writer.number_of(division));
      divide.bucket = index;
      divide.divisor = step.divisor();
    }
    step.gradient[at(index)] = writer.last_kernel;
  }

  /// Does `.grad` lie in the bucket already? After zero_grad dropped it, only once an earlier
  /// micro-batch has communicated.
  static bool is_view(const StepBuilder& step) {
    const Training& training = step.training;
    const bool earlier = step.writer.micro_batch > 0 && !training.no_sync && !copies_back(training);
    return views_survive(training) || (training.gradient_as_bucket_view && earlier);
  }

  /// Are results copied back? Gradients that are views of their bucket need no copy, nor do
  /// gradients that an optimizer has used within the hook.
  static bool copies_back(const Training& training) {
    if (training.comm_hook.kind == CommHookKind::optimizer_overlap) return false;
    return !training.gradient_as_bucket_view || !result_in_bucket(training.comm_hook);
  }

  void send_used_map(StepBuilder& step) {
    used_map_ = step.writer.announce(Operation::all_reduce, Message::used_map,
                                     ddp_parameters(step) * flag_size);
  }

  /// What DDP does with a full bucket: reduces it, or calls the comm hook.
  void launch(StepBuilder& step, std::int32_t bucket) {
    step.launched[at(bucket)] = step.writer.sent[at(bucket)] = nobody;
    if (step.training.skip_all_reduce_unused_params &&
        step.used(step.bucket(bucket).parameters).empty())
      return;
    if (step.bucket(bucket).sparse) return gather_sparse(step, bucket);
    if (!step.training.comm_hook) return step.all_reduce(bucket, true);
    hooked_.launch(step, bucket);
  }

  /// ProcessGroupGloo.cpp AsyncSparseAllreduceWork: shapes, indices and values from everybody, one
  /// after the other; each rank adds them up (that is not priced).
  static void gather_sparse(StepBuilder& step, std::int32_t bucket) {
    const StepWorks::SparseSizes& sparse =
        step.works.sparse[at(step.bucket(bucket).parameters.front())];
    ScheduleWriter& writer = step.writer;
    const auto gather = [&](Message message, Bytes size) {
      const std::int32_t result =
          writer.announce(Operation::all_gather, message, size, step.launched[at(bucket)], true);
      Task& task = writer.schedule.tasks[at(writer.collective_of(result))];
      writer.sent[at(bucket)] = writer.collective_of(result);
      task.bucket = bucket;
      task.gradient = step.gradient[at(bucket)];
      step.launched[at(bucket)] = result;
    };
    gather(Message::sparse_shape, sparse_shape_size);
    gather(Message::sparse_indices, sparse.indices);
    gather(Message::sparse_values, sparse.values);
  }

  /// Bucket by bucket: wait, copy back. The host has to read the used map before it may leave the
  /// gradients of unused parameters alone; otherwise nobody hurries to wait for it.
  void finalize(StepBuilder& step) const {
    bool map_read = false;
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(in_turn_); ++b) {
      if (step.launched[at(b)] == nobody) continue;
      step.wait(b);
      const std::vector<std::int32_t>& members = step.bucket(b).parameters;
      const bool all_used = step.used(members).size() == members.size();
      if (!all_used && used_map_ != nobody && !map_read) {
        step.writer.host_reads(used_map_);
        map_read = true;
      }
      if (copies_back(step.training) && !step.bucket(b).sparse)
        step.per_parameter(Operation::copy_out, step.works.copy_back, b);
    }
    if (used_map_ != nobody && !map_read) step.writer.await(used_map_);
  }

  /// Sends everything at the end: the first backward pass of a static graph only counts how often
  /// hooks are called.
  void communicate_late(StepBuilder& step) {
    send_used_map(step);
    read_active_ranks(step);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(step.works.parameters()); ++i)
      if (!is_delayed(step, i)) fill(step, i);
    const auto buckets = static_cast<std::int32_t>(in_turn_);
    for (std::int32_t b = 0; b < buckets; ++b) fill_together(step, b);
    for (std::int32_t b = 0; b < buckets; ++b) launch(step, b);
  }

  HookedBuckets hooked_;
  std::size_t in_turn_ = 0;             ///< buckets launched in order: all but the delayed one
  std::size_t next_ = 0;                ///< the first that has not been launched
  std::vector<std::size_t> missing_;    ///< [bucket] gradients still to come
  std::vector<std::int32_t> unused_;    ///< ascending
  bool marked_unused_ = false;          ///< in this backward
  std::int32_t used_map_ = nobody;      ///< task that reduces it, of this backward
  std::int32_t active_ranks_ = nobody;  ///< task that tells of this rank, of this forward
};

}  // namespace

std::unique_ptr<StrategyTasks> make_bucketed() {
  return std::make_unique<Bucketed>();
}

}  // namespace ddpsim
