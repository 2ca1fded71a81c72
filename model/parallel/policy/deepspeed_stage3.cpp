// DeepSpeed's ZeRO, stage 3. Every parameter is cut into W equal parts by elements; small ones
// (stage3_param_persistence_threshold) stay whole beside that.
//
//     before a module's pass what is missing of its parameters is gathered and waited for; then
//                those that the step uses next are gathered ahead, until the prefetch bucket is
//                full. A module that contains others does that too, before these. Several
//                parameters are gathered together: a copy in, one all-gather, a copy out for each.
//                One alone is gathered where it is used.
//     behind it  what the step does not use again soon (stage3_max_reuse_distance) is freed, but
//                for parameters that gathering ahead has passed by because they were there.
//     gradients  are copied into a bucket, and reduced before it would hold too much: pack by
//                parts, divide, reduce-scatter, and copy or add the rank's parts to what is kept.
//     optimizer  the norm of all gradients is found; behind the update of the rank's parts each
//                parameter that stays whole is gathered.
//
// What is gathered when is module_trace.hpp's to say; here that becomes tasks. With overlap_comm
// gathers and reductions run on streams of their own, which share a communicator; without it all
// runs on the stream of kernels. The host waits while more than two gathers, or two reductions, are
// unfinished. Every step is taken to be like the one before: the first one, in which DeepSpeed
// records what it will use, is not modelled. Modules are known by the names of their parameters:
// those without any, which gather ahead too, are not there.
//
// Source: deepspeed 0.19.8, runtime/zero/stage3.py, parameter_offload.py, partition_parameters.py
// (rules F89-F92).

#include <deque>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/parallel/policy/module_trace.hpp"
#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"
#include "model/parallel/policy/weight_part.hpp"
#include "model/parallel/policy/zero_refusals.hpp"

namespace ddpsim {
namespace {

using program::Holds;
using program::Life;
using program::Pass;
using program::Slice;

/// What a hook takes of the host besides kernels and collectives, in launches of a kernel: assumed,
/// as of fsdp's hooks.
constexpr std::int32_t hook_calls(std::size_t parameters) {
  return 10 + 2 * static_cast<std::int32_t>(parameters);
}
constexpr std::size_t most_unfinished = 2;

/// A parameter, and where it lies.
struct Parted {
  Slice part;      ///< this rank's, as it is sent
  Slice kept;      ///< in the type that is updated: `part`, where they are of one type
  Slice whole;     ///< all parts, one behind the other
  Slice gradient;  ///< of the part, for the optimizer
  Slice partial;   ///< a later micro-batch's
  Slice slot;      ///< its gradient's place in its bucket, or where it is computed
  std::int32_t bucket = nobody;
  std::int32_t group = nobody;   ///< its module's, among the job's
  std::int32_t gather = nobody;  ///< under way
};

struct Gather {
  std::vector<std::int32_t> parameters;
  Slice together;  ///< what all ranks sent, where there are several
  std::int32_t sent = nobody;
};

struct GradientBucket {
  std::vector<std::int32_t> parameters;
  Slice packed;  ///< by parts: the input of the reduce-scatter
  Slice received;
  std::vector<Slice> places;  ///< in the first part
  std::int32_t group = nobody;
  bool is_one = false;  ///< a gradient that no bucket can hold
  Bytes size;
};

class DeepSpeed3 : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_zero(step);
    settings_ = step.training.zero3;
    ranks_ = step.writer.device.ranks;
    aside_ = settings_.overlap_comm && !step.writer.device.synchronous;
    step.shards = ranks_;
    all_ = step.writer.communicator(0, 0);
    trace_ = ModuleTrace(step.works, settings_);
    parameters_.resize(step.works.parameters());
    add_groups(step);
    lay_out_parameters(step);
    lay_out_buckets(step);
    step.memory.compute_in_place();
    for (const Parted& each : parameters_)
      if (!each.gradient.empty()) step.own_parts.push_back({each.kept, each.gradient});
  }

  bool keeps_gradients(const StepBuilder&) const override { return false; }

  void before_forward(StepBuilder&) override { trace_.begin(); }

  bool listens_to_kernels() const override { return true; }

  void before_kernel(StepBuilder& step, const PassKernel& kernel) override {
    if (kernel.pass == Pass::backward) step.gradients_come(kernel.layer, kernel.kernel);
    while (const TracedModule* module = trace_.begins(kernel)) fetch(step, *module);
  }

  void after_kernel(StepBuilder& step, const PassKernel& kernel) override {
    // Kernels have used it, and the streams of gathers do not wait for them: record_stream keeps
    // such memory from gathers meanwhile, and here they get none of it again.
    while (const TracedModule* module = trace_.ends(kernel))
      for (const std::int32_t each : trace_.released(*module))
        step.writer.goes(parameter(each).whole, StepStream::compute);
  }

  void before_backward(StepBuilder&) override {
    filling_ = last_ = nobody;
    reductions_.clear();
    missing_.clear();
    for (const std::vector<std::int32_t>& each : trace_.turns()) missing_.push_back(each.size());
  }

  void gradient_ready(StepBuilder& step, std::int32_t each) override {
    const std::size_t turn = trace_.turn_of(each);
    if (--missing_[turn] > 0) return;
    for (const std::int32_t of_module : trace_.turns()[turn]) put_in(step, of_module);
  }

  void after_backward(StepBuilder& step) override {
    if (filling_ != nobody) reduce(step);
    if (last_ != nobody) step.writer.await(last_);
  }

  void before_optimizer(StepBuilder& step) override {
    std::vector<Slice> gradients;
    for (const Parted& each : parameters_)
      if (!each.gradient.empty()) gradients.push_back(each.gradient);
    find_norm(step, gradients);
  }
  void norm_found(StepBuilder& step) override { add_up_norm(step); }

  void after_optimizer(StepBuilder& step) override {
    cast_parts(step);
    std::vector<std::int32_t> sent;
    for (std::int32_t p = 0; p < count(); ++p)
      if (trace_.persists(p))
        sent.push_back(gather_parts(step, parameter(p).whole, parameter(p).part, nobody, false));
    for (const std::int32_t each : sent) step.writer.await(each);
  }

 private:
  Parted& parameter(std::int32_t each) { return parameters_[at(each)]; }
  std::int32_t count() const { return static_cast<std::int32_t>(parameters_.size()); }

  static void gradient_goes(StepBuilder& step, std::int32_t each, StepStream pool) {
    if (step.memory.is_sharded(each)) step.writer.goes(step.memory.where(each), pool);
  }

  // Where things lie.

  /// One for each module with parameters of its own.
  void add_groups(StepBuilder& step) {
    std::vector<program::ParameterGroup>& groups = step.writer.memory.job.groups;
    for (const TracedModule& module : trace_.modules()) {
      if (module.parameters.empty()) continue;
      program::ParameterGroup& group = groups.emplace_back();
      group.parameters = module.parameters;
      for (const std::int32_t each : module.parameters) {
        group.size += step.works.gradients[at(each)].size;
        parameter(each).group = static_cast<std::int32_t>(groups.size()) - 1;
      }
      const std::string& first = step.works.names[at(module.parameters.front())];
      const std::size_t dot = first.rfind('.');
      group.name = dot == std::string::npos ? "the root" : first.substr(0, dot);
    }
  }

  void lay_out_parameters(StepBuilder& step) {
    program::JobMemory& memory = step.writer.memory;
    for (std::int32_t p = 0; p < count(); ++p) {
      Parted& each = parameter(p);
      const std::int64_t elements = step.memory.elements(p);
      const std::int64_t length = (elements + ranks_ - 1) / ranks_;
      const DType kept = step.memory.kept_type(p), type = step.memory.type(p);
      if (!step.unused(p)) each.gradient = memory.add("shard", p, Holds::gradient, kept, length);
      if (!step.unused(p) && step.training.micro_batches > 1)
        each.partial = memory.add("part", p, Holds::gradient, kept, length);
      if (trace_.persists(p)) {
        const WeightPart part = lay_out_part(step, {p}, p, 1, 1, each.gradient);
        each.part = part.mine;
        each.kept = part.masters.empty() ? part.mine : part.masters;
        each.whole = part.all;
        continue;
      }
      step.memory.shard(p, length, all_);
      step.memory.set_shard_gradient(p, each.gradient);
      each.kept = each.part = step.memory.shard_of(p);
      if (kept != type)
        each.part = memory.add("sent part", p, Holds::parameter, type, length, Life::job,
                               program::Start::zeros);
      each.whole = memory.add("gathered", p, Holds::gathered, type, ranks_ * length, Life::held);
      memory.job.buffers[step.memory.weight(p).buffer].inside = {each.whole.buffer,
                                                                 program::nowhere, 0, elements};
    }
  }

  void lay_out_buckets(StepBuilder& step) {
    std::int64_t held = 0;
    for (const std::vector<std::int32_t>& turn : trace_.turns())
      for (const std::int32_t each : turn) {
        const std::int64_t elements = step.memory.elements(each);
        if (buckets_.empty() || held + elements > settings_.reduce_bucket_size) {
          buckets_.emplace_back();
          held = 0;
        }
        held += elements;
        parameter(each).bucket = static_cast<std::int32_t>(buckets_.size()) - 1;
        buckets_.back().parameters.push_back(each);
        buckets_.back().size += step.works.gradients[at(each)].size;
        buckets_.back().is_one = elements > settings_.reduce_bucket_size;
      }
    for (std::size_t b = 0; b < buckets_.size(); ++b) lay_out(step, static_cast<std::int32_t>(b));
  }

  void lay_out(StepBuilder& step, std::int32_t index) {
    GradientBucket& bucket = buckets_[at(index)];
    program::JobMemory& memory = step.writer.memory;
    const DType type = step.memory.type(bucket.parameters.front());
    std::int64_t elements = 0, length = 0;
    for (const std::int32_t each : bucket.parameters) {
      elements += step.memory.elements(each);
      length += parameter(each).gradient.count;
    }
    const Slice data = bucket.is_one ? step.memory.where(bucket.parameters.front())
                                     : memory.add("b", index, Holds::bucket, type, elements);
    bucket.packed = memory.add("scattered", index, Holds::scattered, type, ranks_ * length);
    bucket.received = memory.add("received", index, Holds::scattered, type, length);
    std::int64_t begin = 0, place = 0;
    for (const std::int32_t each : bucket.parameters) {
      const std::int64_t count = step.memory.elements(each);
      parameter(each).slot = {data.buffer, program::nowhere, data.begin + begin, count};
      bucket.places.push_back(
          {bucket.packed.buffer, program::nowhere, place, parameter(each).gradient.count});
      begin += count;
      place += parameter(each).gradient.count;
    }
    bucket.group = static_cast<std::int32_t>(memory.job.groups.size());
    memory.job.groups.push_back(
        {bucket.parameters, bucket.size, fmt::format("gradients {}", index)});
  }

  // Gathers.

  /// Of a module that begins.
  void fetch(StepBuilder& step, const TracedModule& module) {
    call_hook(step, module);
    if (const auto missing = trace_.gathered_for(module); !missing.empty()) gather(step, missing);
    for (const std::int32_t each : module.parameters)
      if (parameter(each).gather != nobody) take(step, at(parameter(each).gather));
    if (const auto ahead = trace_.gathered_ahead(module); !ahead.empty()) gather(step, ahead);
  }

  void call_hook(StepBuilder& step, const TracedModule& module) {
    const std::int32_t group =
        module.parameters.empty() ? nobody : parameter(module.parameters.front()).group;
    Work work;
    work.operation = Operation::unit_hook;
    work.launches = hook_calls(module.parameters.size());
    step.writer.host_task(Operation::unit_hook, work,
                          program::Call{.what = program::Call::What::unit, .index = group},
                          {.group = group});
  }

  void gather(StepBuilder& step, const std::vector<std::int32_t>& parameters) {
    StepWriter& writer = step.writer;
    for (; unfinished_.size() > most_unfinished; unfinished_.pop_front())
      if (aside_) writer.host_waits_for_collective(unfinished_.front(), nobody);
    const std::int32_t group = parameter(parameters.front()).group;
    const auto number = static_cast<std::int32_t>(gathers_.size());
    Gather& made = gathers_.emplace_back();
    made.parameters = parameters;
    std::vector<Slice> parts;
    std::int64_t length = 0;
    for (const std::int32_t each : parameters) {
      parts.push_back(parameter(each).part);
      length += parts.back().count;
      writer.comes(parameter(each).whole, aside_ ? StepStream::gather : StepStream::compute);
      parameter(each).gather = number;
    }
    const DType type = writer.memory.job.buffers[parts.front().buffer].type;
    StepWriter::Sending sending;
    sending.input = aside_ ? nobody : writer.last_kernel;
    sending.what.from = parts.front();
    sending.what.to = parameter(parameters.front()).whole;
    if (parameters.size() > 1) {
      made.together = writer.memory.add("together", number, Holds::gathered, type, ranks_ * length);
      const Slice mine{made.together.buffer, all_, 0, length};
      const program::Operands to = writer.memory.list({mine});
      kernel(step, aside_ ? StepStream::gather : writer.kernel_stream,
             moving(Operation::pack, 2 * length * size_of(type)),
             program::Pack{.to = to, .from = writer.memory.list(parts)}, group, nobody);
      sending.input = writer.newest();
      sending.what.from = mine;
      sending.what.to = made.together;
    }
    sending.work.operation = Operation::all_gather;
    sending.work.message = Message::parameters;
    sending.work.payload = length * size_of(type);
    sending.work.handed_over = true;
    sending.what.what = program::Collectives::all_gather;
    sending.of.group = group;
    sending.ready = sending.input;
    gathers_.back().sent = writer.send(sending);
    unfinished_.push_back(gathers_.back().sent);
    if (!aside_) writer.await(gathers_.back().sent);
  }

  /// The wait for a gather, and what makes tensors of it.
  void take(StepBuilder& step, std::size_t number) {
    StepWriter& writer = step.writer;
    Gather& made = gathers_[number];
    std::int32_t last = made.sent;
    std::int64_t begin = 0;
    for (const std::int32_t each : made.parameters) {
      Parted& of = parameter(each);
      of.gather = nobody;
      if (made.together.empty()) continue;
      const Slice place{made.together.buffer, program::nowhere, begin, of.part.count};
      begin += of.part.count;
      const DType type = writer.memory.job.buffers[of.whole.buffer].type;
      program::Unchunk unchunk;
      unchunk.to = writer.memory.list({of.whole});
      unchunk.places = writer.memory.list({place});
      unchunk.from = made.together;
      unchunk.parts = ranks_;
      Work work = moving(Operation::pack, 2 * of.whole.count * size_of(type));
      work.message = Message::parameters;
      kernel(step, aside_ ? StepStream::gather : writer.kernel_stream, work, unchunk, of.group,
             last);
      last = writer.newest();
    }
    if (aside_) writer.await(last);
  }

  // Reductions.

  /// A gradient's hook.
  void put_in(StepBuilder& step, std::int32_t each) {
    const std::int32_t bucket = parameter(each).bucket;
    const std::int32_t group = buckets_[at(bucket)].group;
    step.fire_hook(each, group);
    if (filling_ != nobody && filling_ != bucket) reduce(step);
    filling_ = bucket;
    if (buckets_[at(bucket)].is_one) return;
    step.writer.kernel_task(
        Operation::copy_in, step.works.copy_in[at(each)],
        program::Scale{.to = parameter(each).slot, .from = step.memory.where(each)},
        {.parameter = each, .group = group});
    gradient_goes(step, each, StepStream::compute);
  }

  /// Of the bucket that is being filled.
  void reduce(StepBuilder& step) {
    StepWriter& writer = step.writer;
    const GradientBucket& bucket = buckets_[at(std::exchange(filling_, nobody))];
    for (; reductions_.size() > most_unfinished; reductions_.pop_front())
      if (aside_) writer.host_waits_for_collective(reductions_.front(), nobody);
    const DType type = writer.memory.job.buffers[bucket.packed.buffer].type;
    const Bytes size = bucket.packed.count * size_of(type);
    std::vector<Slice> from;
    for (const std::int32_t each : bucket.parameters) from.push_back(parameter(each).slot);
    program::Chunk chunk;
    chunk.to = bucket.packed;
    chunk.places = writer.memory.list(bucket.places);
    chunk.from = writer.memory.list(from);
    chunk.parts = ranks_;
    const StepStream stream = aside_ ? StepStream::scatter : writer.kernel_stream;
    kernel(step, stream, moving(Operation::pack, 2 * size), chunk, bucket.group,
           aside_ ? writer.last_kernel : nobody);
    kernel(step, stream, moving(Operation::divide, 2 * size),
           program::Scale{.to = bucket.packed, .from = bucket.packed, .factor = step.share()},
           bucket.group, nobody);
    StepWriter::Sending sending;
    sending.work.operation = Operation::reduce_scatter;
    sending.work.payload = size;
    sending.work.handed_over = true;
    sending.what.what = program::Collectives::reduce_scatter;
    sending.what.reduction = program::Reduction::sum;
    sending.what.from = bucket.packed;
    sending.what.to = bucket.received;
    sending.of.group = bucket.group;
    sending.input = sending.ready = writer.newest();
    last_ = writer.send(sending);
    reductions_.push_back(last_);
    if (!aside_) writer.await(last_, bucket.group);
    keep_parts(step, bucket, stream);
    if (!aside_) last_ = nobody;
    if (bucket.is_one) gradient_goes(step, bucket.parameters.front(), stream);
  }

  /// What the rank received becomes its parts' gradients, or is added to them.
  void keep_parts(StepBuilder& step, const GradientBucket& bucket, StepStream stream) {
    StepWriter& writer = step.writer;
    const bool adds = writer.micro_batch > 0;
    std::int64_t begin = 0;
    for (const std::int32_t each : bucket.parameters) {
      const Parted& of = parameter(each);
      const Slice received{bucket.received.buffer, program::nowhere, begin, of.gradient.count};
      begin += of.gradient.count;
      const Bytes read = size_of(writer.memory.job, received);
      const Bytes kept = size_of(writer.memory.job, of.gradient);
      const Slice to = adds ? of.partial : of.gradient;
      kernel(step, stream, moving(Operation::copy_out, read + kept),
             program::Cast{.to = to, .from = received}, bucket.group, last_);
      if (adds)
        kernel(step, stream, moving(Operation::accumulate, 3 * kept),
               program::Combine{.to = of.gradient, .left = of.gradient, .right = of.partial},
               bucket.group, nobody);
    }
    last_ = writer.newest();
  }

  void kernel(StepBuilder& step, StepStream stream, const Work& work, const program::Action& action,
              std::int32_t group, std::int32_t behind) {
    StepWriter& writer = step.writer;
    const program::Origin origin{.group = group};
    if (stream == writer.kernel_stream) {
      writer.kernel_task(work.operation, work, action, origin);
      return;
    }
    writer.add(work.operation, stream, writer.number_of(work), action, origin);
    if (behind != nobody) writer.depend(behind);
  }

  /// Parts of the type that is updated become those that are sent, where they are not.
  void cast_parts(StepBuilder& step) {
    StepWriter& writer = step.writer;
    std::vector<Slice> to, from;
    Bytes traffic;
    for (const Parted& each : parameters_) {
      if (each.part == each.kept) continue;
      to.push_back(each.part);
      from.push_back(each.kept);
      traffic += size_of(writer.memory.job, each.part) + size_of(writer.memory.job, each.kept);
    }
    if (to.empty()) return;
    Work work = moving(Operation::cast, traffic);
    work.message = Message::parameters;
    const program::Operands written = writer.memory.list(to);
    writer.kernel_task(Operation::cast, work,
                       program::Pack{.to = written, .from = writer.memory.list(from)});
  }

  ZeroSettings settings_;
  int ranks_ = 1;
  std::int16_t all_ = 0;  ///< the communicator
  bool aside_ = false;    ///< gathers and reductions have streams of their own
  ModuleTrace trace_;
  std::vector<Parted> parameters_;
  std::vector<Gather> gathers_;
  std::deque<std::int32_t> unfinished_;  ///< gathers that the host has not waited for
  std::vector<std::size_t> missing_;     ///< [turn of gradients] those still to come
  std::vector<GradientBucket> buckets_;  ///< in the order in which they are reduced
  std::int32_t filling_ = nobody, last_ = nobody;
  std::deque<std::int32_t> reductions_;
};

}  // namespace

std::unique_ptr<StrategyTasks> make_deepspeed_stage3() {
  return std::make_unique<DeepSpeed3>();
}

}  // namespace ddpsim
