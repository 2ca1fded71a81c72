// DeepSpeed's ZeRO, stage 3. Every parameter is cut into W equal parts by elements; small ones
// (stage3_param_persistence_threshold) stay whole beside that.
//
//     before a module's pass what is missing of its parameters is gathered and waited for; then
//                those that the step uses next are gathered ahead, as many as the prefetch bucket
//                holds. Several parameters are gathered together: a copy in, one all-gather, a copy
//                out for each. One alone is gathered where it is used.
//     behind it  what the step does not use again soon (stage3_max_reuse_distance) is freed.
//     gradients  are copied into a bucket, and reduced before it would hold too much: pack by
//                parts, divide, reduce-scatter, and copy or add the rank's parts to what is kept.
//     optimizer  on the rank's parts; then parameters that stay whole are gathered.
//
// With overlap_comm gathers and reductions run on streams of their own, which share a communicator;
// without it all runs on the stream of kernels. The host waits while more than two gathers, or two
// reductions, are unfinished. Every step is taken to be like the one before: the first one, in which
// DeepSpeed records what it will use, is not modelled.
//
// Source: deepspeed/runtime/zero/stage3.py, partitioned_param_coordinator.py,
// partition_parameters.py (rules F89-F92).

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"
#include "model/parallel/policy/weight_part.hpp"

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
  bool persists = false;
  std::int32_t gather = nobody;  ///< under way
  bool is_there = false;
};

struct Gather {
  std::vector<std::int32_t> parameters;
  Slice together;  ///< what all ranks sent, where there are several
  program::Operands places;
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
    check_parts(step);
    if (step.training.no_sync && step.training.micro_batches > 1)
      check(Refusal{"training.no_sync",
                    "DeepSpeed reduces every micro-batch's gradients in stage 3: take no_sync out",
                    {}});
    settings_ = step.training.zero3;
    ranks_ = step.writer.device.ranks;
    aside_ = settings_.overlap_comm && !step.writer.device.synchronous;
    step.shards = ranks_;
    all_ = step.writer.communicator(0, 0);
    find_modules(step);
    lay_out_parameters(step);
    lay_out_buckets(step);
    step.memory.compute_in_place();
    for (const Parted& each : parameters_)
      if (!each.gradient.empty()) step.own_parts.push_back({each.kept, each.gradient});
  }

  bool keeps_gradients(const StepBuilder&) const override { return false; }

  void before_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    const std::vector<std::int32_t>& mine = modules_[layer];
    if (pass == Pass::backward)
      for (const auto& completed : step.works.layers[layer].completes)
        for (const std::int32_t each : completed)
          gradient_comes(step, each);
    if (mine.empty()) return;
    call_hook(step, layer);
    std::vector<std::int32_t> missing;
    for (const std::int32_t each : mine)
      if (!is_available(each)) missing.push_back(each);
    if (!missing.empty()) gather(step, missing, groups_[layer]);
    for (const std::int32_t each : mine)
      if (parameter(each).gather != nobody) take(step, at(parameter(each).gather));
    prefetch(step, place_of(step, pass, layer));
  }

  void after_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    const std::vector<std::int32_t> used_soon = used_after(place_of(step, pass, layer));
    for (const std::int32_t each : modules_[layer])
      if (!parameter(each).persists && std::ranges::find(used_soon, each) == used_soon.end())
        release(step, each);
  }

  void before_backward(StepBuilder&) override {
    filling_ = last_ = nobody;
    reductions_.clear();
  }

  void gradient_ready(StepBuilder& step, std::int32_t each) override {
    StepWriter& writer = step.writer;
    Work hook;
    hook.operation = Operation::hook;
    hook.hook_calls = 1;
    const std::int32_t bucket = parameter(each).bucket;
    const std::int32_t group = buckets_[at(bucket)].group;
    writer.host_task(Operation::hook, hook,
                     program::Call{.what = program::Call::What::hook, .index = each},
                     {.parameter = each, .group = group});
    if (filling_ != nobody && filling_ != bucket) reduce(step);
    filling_ = bucket;
    if (buckets_[at(bucket)].is_one) return;
    writer.kernel_task(Operation::copy_in, step.works.copy_in[at(each)],
                       program::Scale{.to = parameter(each).slot, .from = step.memory.where(each)},
                       {.parameter = each, .group = group});
    gradient_goes(step, each);
  }

  void after_backward(StepBuilder& step) override {
    if (filling_ != nobody) reduce(step);
    if (last_ != nobody) step.writer.await(last_);
  }

  void norm_found(StepBuilder& step) override { add_up_norm(step); }

  void after_optimizer(StepBuilder& step) override {
    cast_parts(step);
    std::vector<std::int32_t> persistent;
    for (std::size_t p = 0; p < parameters_.size(); ++p)
      if (parameters_[p].persists) persistent.push_back(static_cast<std::int32_t>(p));
    if (persistent.empty()) return;
    const bool aside = std::exchange(aside_, false);
    gather(step, persistent, nobody);
    take(step, gathers_.size() - 1);
    aside_ = aside;
  }

 private:
  Parted& parameter(std::int32_t each) { return parameters_[at(each)]; }
  bool is_available(std::int32_t each) const {
    const Parted& of = parameters_[at(each)];
    return of.persists || of.is_there || of.gather != nobody;
  }

  static void gradient_comes(StepBuilder& step, std::int32_t each) {
    if (step.memory.is_sharded(each))
      step.writer.comes(step.memory.computed(each), StepStream::compute);
  }
  static void gradient_goes(StepBuilder& step, std::int32_t each) {
    if (step.memory.is_sharded(each))
      step.writer.goes(step.memory.where(each), StepStream::compute);
  }

  // Where things lie.

  /// A module is a layer of the workload: what has parameters of its own.
  void find_modules(StepBuilder& step) {
    modules_.resize(step.works.layers.size());
    groups_.assign(modules_.size(), nobody);
    std::vector<bool> seen(step.works.parameters(), false);
    for (std::size_t layer = 0; layer < modules_.size(); ++layer) {
      for (const auto& completed : step.works.layers[layer].completes)
        for (const std::int32_t each : completed) {
          modules_[layer].push_back(each);
          seen[at(each)] = true;
        }
      std::ranges::sort(modules_[layer]);
    }
    for (std::size_t p = 0; p < seen.size() && !modules_.empty(); ++p)
      if (!seen[p]) modules_.front().push_back(static_cast<std::int32_t>(p));
    std::vector<program::ParameterGroup>& groups = step.writer.memory.job.groups;
    for (std::size_t layer = 0; layer < modules_.size(); ++layer) {
      if (modules_[layer].empty()) continue;
      groups_[layer] = static_cast<std::int32_t>(groups.size());
      program::ParameterGroup& group = groups.emplace_back();
      group.parameters = modules_[layer];
      for (const std::int32_t each : modules_[layer])
        group.size += step.works.gradients[at(each)].size;
      const std::string& first = step.works.names[at(modules_[layer].front())];
      group.name = first.substr(0, first.rfind('.'));
    }
    for (const std::vector<std::int32_t>& each : modules_) trace_.push_back(&each);
    for (std::size_t layer = modules_.size(); layer-- > 0;) trace_.push_back(&modules_[layer]);
  }

  void lay_out_parameters(StepBuilder& step) {
    program::JobMemory& memory = step.writer.memory;
    parameters_.resize(step.works.parameters());
    for (std::int32_t p = 0; p < static_cast<std::int32_t>(parameters_.size()); ++p) {
      Parted& each = parameter(p);
      const std::int64_t elements = step.memory.elements(p);
      const std::int64_t length = (elements + ranks_ - 1) / ranks_;
      const DType kept = step.memory.kept_type(p), type = step.memory.type(p);
      each.persists = elements <= settings_.param_persistence_threshold;
      if (!step.unused(p)) each.gradient = memory.add("shard", p, Holds::gradient, kept, length);
      if (!step.unused(p) && step.training.micro_batches > 1)
        each.partial = memory.add("part", p, Holds::gradient, kept, length);
      if (each.persists) {
        const WeightPart part =
            lay_out_part(step, {p}, p, 1, 1,
                         each.gradient.empty() ? Slice{0, program::nowhere, 0, 0} : each.gradient);
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
    for (auto layer = step.works.layers.rbegin(); layer != step.works.layers.rend(); ++layer)
      for (const auto& completed : layer->completes)
        for (const std::int32_t each : completed) {
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

  // What a step uses, and when.

  std::size_t place_of(const StepBuilder& step, Pass pass, std::size_t layer) const {
    const std::size_t all = step.works.layers.size();
    return pass == Pass::forward ? layer : 2 * all - 1 - layer;
  }

  /// What modules behind this place in the step use, before too many elements have gone by.
  std::vector<std::int32_t> used_after(std::size_t place) const {
    std::vector<std::int32_t> used;
    std::int64_t passed = 0;
    for (std::size_t t = place + 1; t < trace_.size() && passed < settings_.max_reuse_distance; ++t)
      for (const std::int32_t each : *trace_[t]) {
        used.push_back(each);
        passed += parameters_[at(each)].whole.count;
      }
    return used;
  }

  void prefetch(StepBuilder& step, std::size_t place) {
    std::int64_t live = 0;
    for (const Parted& each : parameters_)
      if (!each.persists && (each.is_there || each.gather != nobody)) live += each.whole.count;
    const std::int64_t most =
        std::min(settings_.max_live_parameters - live, settings_.prefetch_bucket_size);
    std::vector<std::int32_t> ahead;
    std::int64_t elements = 0;
    for (std::size_t t = place + 1; t < trace_.size() && elements < most; ++t)
      for (const std::int32_t each : *trace_[t]) {
        if (elements >= most) break;
        if (is_available(each) || std::ranges::find(ahead, each) != ahead.end()) continue;
        ahead.push_back(each);
        elements += parameter(each).whole.count;
      }
    if (!ahead.empty()) gather(step, ahead, nobody);
  }

  // Gathers.

  void call_hook(StepBuilder& step, std::size_t layer) const {
    Work work;
    work.operation = Operation::unit_hook;
    work.launches = hook_calls(modules_[layer].size());
    step.writer.host_task(Operation::unit_hook, work,
                          program::Call{.what = program::Call::What::unit, .index = groups_[layer]},
                          {.group = groups_[layer]});
  }

  /// A group of the first one's module where they are of several.
  void gather(StepBuilder& step, const std::vector<std::int32_t>& parameters, std::int32_t group) {
    StepWriter& writer = step.writer;
    for (; unfinished_.size() > most_unfinished; unfinished_.pop_front())
      if (aside_) writer.host_waits_for_collective(unfinished_.front(), nobody);
    if (group == nobody) group = group_of(parameters.front());
    const auto number = static_cast<std::int32_t>(gathers_.size());
    Gather& made = gathers_.emplace_back();
    made.parameters = parameters;
    std::vector<Slice> parts;
    std::int64_t length = 0;
    for (const std::int32_t each : parameters) {
      parts.push_back(parameter(each).part);
      length += parts.back().count;
      if (!parameter(each).persists) writer.comes(parameter(each).whole, pool());
      parameter(each).gather = number;
    }
    const DType type = writer.memory.job.buffers[parts.front().buffer].type;
    StepWriter::Sending sending;
    sending.input = aside_ ? nobody : writer.last_kernel;
    sending.what.from = parts.front();
    sending.what.to = parameter(parameters.front()).whole;
    if (parameter(parameters.front()).persists) sending.what.from = sending.what.to;
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
      of.is_there = true;
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
      kernel(step, aside_ ? StepStream::gather : writer.kernel_stream, work, unchunk,
             group_of(each), last);
      last = writer.newest();
    }
    if (aside_) writer.await(last);
  }

  void release(StepBuilder& step, std::int32_t each) {
    if (!std::exchange(parameter(each).is_there, false)) return;
    step.writer.goes(parameter(each).whole, pool());
  }

  StepStream pool() const { return StepStream::compute; }

  std::int32_t group_of(std::int32_t each) const {
    for (std::size_t layer = 0; layer < modules_.size(); ++layer)
      if (std::ranges::find(modules_[layer], each) != modules_[layer].end()) return groups_[layer];
    return nobody;
  }

  // Reductions.

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
    if (bucket.is_one) gradient_goes(step, bucket.parameters.front());
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
      const Bytes read = received.count * size_of(writer.memory.job.buffers[received.buffer].type);
      const Bytes kept =
          of.gradient.count * size_of(writer.memory.job.buffers[of.gradient.buffer].type);
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
      traffic += each.part.count * (size_of(writer.memory.job.buffers[each.part.buffer].type) +
                                    size_of(writer.memory.job.buffers[each.kept.buffer].type));
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
  std::vector<std::vector<std::int32_t>> modules_;       ///< [layer] its parameters
  std::vector<std::int32_t> groups_;                     ///< [layer] as in Job::groups
  std::vector<const std::vector<std::int32_t>*> trace_;  ///< modules as a step uses them
  std::vector<Parted> parameters_;
  std::vector<Gather> gathers_;
  std::deque<std::int32_t> unfinished_;  ///< gathers that the host has not waited for
  std::vector<GradientBucket> buckets_;  ///< in the order in which they are reduced
  std::int32_t filling_ = nobody, last_ = nobody;
  std::deque<std::int32_t> reductions_;
};

}  // namespace

std::unique_ptr<StrategyTasks> make_deepspeed_stage3() {
  return std::make_unique<DeepSpeed3>();
}

}  // namespace ddpsim
