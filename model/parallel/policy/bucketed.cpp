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

#include "model/parallel/policy/before_forward.hpp"
#include "model/parallel/policy/bucket_plan.hpp"
#include "model/parallel/policy/hooked_buckets.hpp"
#include "model/parallel/policy/iteration.hpp"
#include "model/parallel/policy/message_sizes.hpp"
#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

/// All parameters in one piece, averaged (PeriodicModelAverager).
/// Source: torch/distributed/algorithms/model_averaging/utils.py average_parameters.
void average_models(StepBuilder& step) {
  StepWriter& writer = step.writer;
  const auto prepare = [&](Operation operation, const program::Action& action) {
    Work work = moving(operation, 2 * step.works.gradient_size);
    work.message = Message::parameters;
    writer.kernel_task(operation, work, action);
  };
  const program::Slice model = step.memory.model();
  const auto pack = [&](const std::vector<program::Slice>& to,
                        const std::vector<program::Slice>& from) {
    const program::Operands written = writer.memory.list(to);
    return program::Pack{.to = written, .from = writer.memory.list(from)};
  };
  prepare(Operation::concatenate, pack({model}, step.memory.weights()));
  prepare(Operation::divide, program::Scale{.to = model, .from = model, .factor = step.share()});
  if (!writer.device.synchronous) writer.host_reads(writer.last_kernel);
  StepWriter::Sending sending;
  sending.work.operation = Operation::all_reduce;
  sending.work.message = Message::parameters;
  sending.work.payload = step.works.gradient_size;
  sending.what.reduction = program::Reduction::sum;
  sending.what.from = sending.what.to = model;
  sending.input = writer.last_kernel;
  const std::int32_t sent = writer.send(sending);
  // The average takes the place of the parameters, at no cost besides.
  writer.await(sent, nobody, pack(step.memory.weights(), {model}));
}

class Bucketed : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_bucketed(step.works, step.training);
    step.buckets = plan_buckets(step.works, step.training);
    in_turn_ = step.buckets.size();
    for (Bucket& bucket : step.buckets) bucket.views = views_survive(step.training);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(step.works.parameters()); ++i)
      if (step.unused(i) && !is_delayed(step, i)) unused_.push_back(i);
    if (step.training.delayed) {
      Bucket& delayed = step.add_bucket(step.training.delayed->parameters);
      delayed.delayed = delayed.views = true;
    }
    if (step.training.comm_hook) hooked_.plan(step, in_turn_);
    // By itself in its bucket it is gathered.
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(step.works.parameters()); ++i)
      if (step.works.gradients[at(i)].sparse && !is_skipped(step, {i}))
        step.others_have(not_one_all_reduce);
  }

  void laid_out(StepBuilder& step, std::int32_t bucket) override {
    if (step.bucket(bucket).has_hook) hooked_.lay_out(step, bucket);
  }

  void before_forward(StepBuilder& step) override {
    active_ranks_ = announce_before_forward(step, static_cast<std::int64_t>(in_turn_));
  }

  void before_backward(StepBuilder& step) override {
    if (searches(step)) {
      Work work;
      work.operation = Operation::search_unused;
      work.launches = step.works.operations;
      step.writer.host_task(Operation::search_unused, work,
                            program::Call{.what = program::Call::What::search});
    }
    next_ = 0;
    marked_unused_ = false;
    used_map_ = nobody;
    missing_.clear();
    for (const Bucket& bucket : std::span(step.buckets).first(in_turn_))
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
    step.writer.log_iterations();
  }

  bool computes_aside(const StepBuilder& step) const override {
    return !delays_all_reduce(step.training) && hooked_.computes_aside();
  }

 private:
  static constexpr std::string_view not_one_all_reduce = "a bucket is not one all-reduce";

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
    step.divide_bucket(bucket, work);
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
    const bool unused = step.unused(parameter), is_in_place = is_view(step) && !unused;
    // A hook divides itself.
    const bool divides = !step.training.comm_hook && step.divides();
    const float factor = divides ? step.share() : 1;
    // No task puts it there, so a bucket's turn comes with none.
    if (is_in_place && !divides) step.others_have(BucketMarks::late);
    if (step.bucket(bucket).sparse && !unused)
      divide_rows(step, parameter, factor);
    else if (fills_together(step) && !unused)
      return;
    else if (!is_in_place)
      step.put_in(parameter, step.writer.number_of(step.works.copy_in[at(parameter)]), factor);
    else if (divides)
      divide_in_place(step, parameter);
    step.mark_filled(parameter);
    step.gradient[at(bucket)] = step.writer.last_kernel;
  }

  static void divide_rows(StepBuilder& step, std::int32_t parameter, float factor) {
    const StepBuffers::Rows& rows = step.memory.rows_of(parameter);
    step.writer.kernel_task(Operation::divide, step.works.copy_in[at(parameter)],
                            program::TakeRows{.to = rows.values,
                                              .rows = rows.numbers,
                                              .from = step.memory.where(parameter),
                                              .factor = factor},
                            {.parameter = parameter, .group = step.bucket_of[at(parameter)]});
  }

  static void divide_in_place(StepBuilder& step, std::int32_t parameter) {
    const program::Slice& slot = step.memory.slot(parameter);
    step.writer.kernel_task(Operation::divide, step.works.divide_in_bucket[at(parameter)],
                            program::Scale{.to = slot, .from = slot, .factor = step.share()},
                            {.parameter = parameter, .group = step.bucket_of[at(parameter)]});
  }

  static bool fills_together(const StepBuilder& step) {
    return step.training.batched_grad_copy && !step.training.comm_hook;
  }

  /// All gradients of a bucket at once (rule R25); unused ones have been filled with zeros.
  void fill_together(StepBuilder& step, std::int32_t index) const {
    const Bucket& bucket = step.bucket(index);
    const std::vector<std::int32_t> filled = step.used(bucket.parameters);
    if (!fills_together(step) || bucket.sparse || filled.empty()) return;
    if (!is_view(step)) step.concatenate(index, copy_together(step.works, filled));
    if (step.divides()) step.divide_bucket(index, moving(Operation::divide, 2 * bucket.size));
    step.gradient[at(index)] = step.writer.last_kernel;
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
    return !training.gradient_as_bucket_view ||
           row_of(training.comm_hook.kind).result == HookResult::elsewhere;
  }

  void send_used_map(StepBuilder& step) {
    used_map_ = step.writer.announce(Operation::all_reduce, Message::used_map,
                                     ddp_parameters(step) * flag_size);
  }

  /// Does DDP not send a bucket of these?
  static bool is_skipped(const StepBuilder& step, const std::vector<std::int32_t>& parameters) {
    return step.training.skip_all_reduce_unused_params && step.used(parameters).empty();
  }

  /// What DDP does with a full bucket: reduces it, or calls the comm hook.
  void launch(StepBuilder& step, std::int32_t bucket) {
    step.launched[at(bucket)] = step.writer.sent[at(bucket)] = nobody;
    if (is_skipped(step, step.bucket(bucket).parameters)) return;
    if (step.bucket(bucket).sparse) return gather_sparse(step, bucket);
    if (!step.training.comm_hook) return step.all_reduce(bucket, true);
    hooked_.launch(step, bucket);
  }

  /// ProcessGroupGloo.cpp AsyncSparseAllreduceWork: shapes, indices and values from everybody, one
  /// after the other; each rank adds them up (that is not priced).
  static void gather_sparse(StepBuilder& step, std::int32_t bucket) {
    const std::int32_t parameter = step.bucket(bucket).parameters.front();
    const StepWorks::SparseSizes& sizes = step.works.sparse[at(parameter)];
    StepWriter& writer = step.writer;
    const auto gather = [&](Message message, Bytes size, const program::Slice& from,
                            const program::Slice& to, const program::Action* then) {
      StepWriter::Sending sending;
      sending.work.operation = Operation::all_gather;
      sending.work.message = message;
      sending.work.payload = size;
      sending.work.handed_over = true;
      sending.what.what = program::Collectives::all_gather;
      sending.what.from = from;
      sending.what.to = to;
      sending.of.group = bucket;
      sending.input = writer.last_kernel;
      sending.behind = step.launched[at(bucket)];
      sending.ready = step.gradient[at(bucket)];
      sending.then = then;
      step.launched[at(bucket)] = writer.send(sending);
    };
    const std::int32_t shape = writer.next_collective();
    const program::Slice mine = writer.note(shape, sparse_shape_size);
    const program::Slice all = writer.note(shape, writer.device.ranks * sparse_shape_size);
    gather(Message::sparse_shape, sparse_shape_size, mine, all, nullptr);
    const StepBuffers::Rows& rows = step.memory.rows_of(parameter);
    gather(Message::sparse_indices, sizes.indices, rows.numbers, rows.all_numbers, nullptr);
    const program::Action add =
        program::AddRows{step.memory.where(parameter), rows.all_numbers, rows.all_values};
    gather(Message::sparse_values, sizes.values, rows.values, rows.all_values, &add);
    step.step_has(not_one_all_reduce);
    step.take_from_readers(bucket);
  }

  /// Bucket by bucket: wait, copy back. The host has to read the used map before it may leave the
  /// gradients of unused parameters alone; otherwise nobody hurries to wait for it.
  void finalize(StepBuilder& step) const {
    say_what_others_skip(step);
    bool map_read = false;
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(in_turn_); ++b) {
      if (step.launched[at(b)] == nobody) continue;
      step.wait(b);
      const std::vector<std::int32_t>& members = step.bucket(b).parameters;
      const bool all_used = step.used(members).size() == members.size();
      if (!all_used && used_map_ != nobody && !map_read) {
        step.writer.host_reads(used_map_);
        map_read = true;
        // In the midst of those for buckets that hold unused gradients alone, the last ones.
        if (unused_.size() > 1) step.others_have("something else is done between two waits");
      }
      if (copies_back(step.training) && !step.bucket(b).sparse)
        step.copy_out(b, step.works.copy_back);
    }
    if (used_map_ != nobody && !map_read) step.writer.await(used_map_);
    if (copies_back(step.training) && !unused_.empty())
      step.others_have("not every gradient is copied back");
  }

  /// Buckets that hold nothing but unused gradients would not be sent, though their turn comes with
  /// the last launch.
  void say_what_others_skip(StepBuilder& step) const {
    if (!step.training.skip_all_reduce_unused_params || unused_.empty()) return;
    step.others_have(step.launched.front() == step.writer.newest()
                         ? "buckets are not waited for in order"
                         : BucketMarks::late);
  }

  /// Sends everything at the end: the first backward pass of a static graph only counts how often
  /// hooks are called.
  void communicate_late(StepBuilder& step) {
    send_used_map(step);
    read_active_ranks(step);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(step.works.parameters()); ++i)
      if (!is_delayed(step, i)) fill(step, i);
    // Unless the first bucket in turn is filled last, others are filled when it could be sent.
    if (at(step.works.arrival.front()) + 1 != step.works.parameters())
      step.others_have(BucketMarks::late);
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
