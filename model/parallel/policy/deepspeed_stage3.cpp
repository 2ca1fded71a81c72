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
// With overlap_comm gathers and reductions run on streams of their own, which share a communicator;
// without it all runs on the stream of kernels. The host waits while more than two gathers, or two
// reductions, are unfinished. Every step is taken to be like the one before: the first one, in
// which DeepSpeed records what it will use, is not modelled. Modules are known by the names of
// their parameters: those without any, which gather ahead too, are not there.
//
// Source: deepspeed 0.19.8, runtime/zero/stage3.py, partitioned_param_coordinator.py,
// partition_parameters.py (rules F89-F92).

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <fmt/format.h>

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
  bool persists = false;
  std::int32_t gather = nobody;  ///< under way
  bool is_there = false;
};

/// A module's turn in a step.
struct Use {
  std::vector<std::int32_t> parameters;      ///< of its own, without those of modules in it
  std::size_t opened_at = 0, closed_at = 0;  ///< layers, as the forward pass goes
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
    check_zero(step);
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

  void before_forward(StepBuilder&) override {
    next_use_ = next_in_queue_ = 0;
    passed_.assign(parameters_.size(), 0);
  }

  void before_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    if (pass == Pass::backward)
      for (const auto& completed : step.works.layers[layer].completes)
        for (const std::int32_t each : completed) gradient_comes(step, each);
    call_hooks(step, pass, layer);
    layer_ = layer;
    fetch_next(step, pass, pass == Pass::backward);
  }

  void after_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    fetch_next(step, pass, false);
    const bool is_forward = pass == Pass::forward;
    for (const Use& use : uses_)
      if ((is_forward ? use.closed_at : use.opened_at) == layer) release(step, use);
  }

  void before_backward(StepBuilder&) override {
    filling_ = last_ = nobody;
    reductions_.clear();
    missing_.clear();
    for (const std::vector<std::int32_t>& each : turns_) missing_.push_back(each.size());
  }

  void gradient_ready(StepBuilder& step, std::int32_t each) override {
    const std::size_t turn = turn_of_[at(each)];
    if (--missing_[turn] > 0) return;
    for (const std::int32_t of_module : turns_[turn]) put_in(step, of_module);
    for (const Use& use : uses_)
      if (use.opened_at == layer_ &&
          std::ranges::find(use.parameters, each) != use.parameters.end())
        release(step, use);
    fetch_next(step, Pass::backward, true);
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
    for (const Parted& each : parameters_)
      if (each.persists) sent.push_back(gather_parts(step, each.whole, each.part, nobody, false));
    for (const std::int32_t each : sent) step.writer.await(each);
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
  static void gradient_goes(StepBuilder& step, std::int32_t each, StepStream pool) {
    if (step.memory.is_sharded(each)) step.writer.goes(step.memory.where(each), pool);
  }

  // Where things lie.

  /// Modules by the names of parameters, in the order in which the forward pass comes to them: one
  /// that contains others before these.
  void find_modules(StepBuilder& step) {
    const std::vector<std::size_t> layers = layers_of(step);
    std::vector<std::int32_t> order(layers.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::int32_t each) { return layers[at(each)]; });
    std::map<std::string, std::size_t> known;
    const auto use = [&](const std::string& module, std::size_t layer) {
      const auto [found, is_new] = known.try_emplace(module, uses_.size());
      if (is_new) uses_.push_back({{}, layer, layer});
      uses_[found->second].closed_at = std::max(uses_[found->second].closed_at, layer);
      return found->second;
    };
    for (const std::int32_t each : order) {
      const std::string& name = step.works.names[at(each)];
      const std::size_t layer = layers[at(each)];
      use("", layer);
      std::size_t mine = 0;
      for (std::size_t dot = name.find('.'); dot != std::string::npos;
           dot = name.find('.', dot + 1))
        mine = use(name.substr(0, dot), layer);
      uses_[mine].parameters.push_back(each);
    }
    for (Use& each : uses_) std::ranges::sort(each.parameters);
    trace_.resize(uses_.size());
    std::iota(trace_.begin(), trace_.end(), 0);
    std::vector<std::size_t> backward = trace_;
    // The last one to end comes first, and one that contains others before these.
    std::ranges::stable_sort(backward, std::ranges::greater{},
                             [this](std::size_t each) { return uses_[each].closed_at; });
    put_modules_in_backward_order(backward);
    trace_.insert(trace_.end(), backward.begin(), backward.end());
    for (std::size_t t = 0; t < trace_.size(); ++t)
      for (const std::int32_t each : uses_[trace_[t]].parameters) queue_.push_back({each, t});
    add_groups(step);
  }

  /// Among those that end in one layer: what contains others, then these, the last one first.
  void put_modules_in_backward_order(std::vector<std::size_t>& order) const {
    const auto is_container = [this](std::size_t each) { return uses_[each].parameters.empty(); };
    for (auto begin = order.begin(); begin != order.end();) {
      const auto end = std::find_if(begin, order.end(), [&](std::size_t each) {
        return uses_[each].closed_at != uses_[*begin].closed_at;
      });
      std::reverse(std::stable_partition(begin, end, is_container), end);
      begin = end;
    }
  }

  /// [parameter] The layer that completes its gradient; 0: none does.
  static std::vector<std::size_t> layers_of(const StepBuilder& step) {
    std::vector<std::size_t> layers(step.works.parameters(), 0);
    for (std::size_t layer = 0; layer < step.works.layers.size(); ++layer)
      for (const auto& completed : step.works.layers[layer].completes)
        for (const std::int32_t each : completed) layers[at(each)] = layer;
    return layers;
  }

  void add_groups(StepBuilder& step) {
    std::vector<program::ParameterGroup>& groups = step.writer.memory.job.groups;
    group_of_.assign(step.works.parameters(), nobody);
    for (const Use& each : uses_) {
      if (each.parameters.empty()) continue;
      program::ParameterGroup& group = groups.emplace_back();
      group.parameters = each.parameters;
      for (const std::int32_t parameter : each.parameters) {
        group.size += step.works.gradients[at(parameter)].size;
        group_of_[at(parameter)] = static_cast<std::int32_t>(groups.size()) - 1;
      }
      const std::string& first = step.works.names[at(each.parameters.front())];
      const std::size_t dot = first.rfind('.');
      group.name = dot == std::string::npos ? "the root" : first.substr(0, dot);
    }
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

  /// Gradients come module by module, in the order of registration: linear layers are of
  /// DeepSpeed's own function, which gives the weight's first.
  void find_turns(const StepBuilder& step) {
    turn_of_.assign(step.works.parameters(), 0);
    for (auto layer = step.works.layers.rbegin(); layer != step.works.layers.rend(); ++layer) {
      const std::size_t before = turns_.size();
      for (const auto& completed : layer->completes)
        for (const std::int32_t each : completed) {
          const auto found = std::find_if(
              turns_.begin() + static_cast<std::ptrdiff_t>(before), turns_.end(),
              [&](const auto& turn) { return group_of_[at(turn.front())] == group_of_[at(each)]; });
          std::vector<std::int32_t>& turn = found == turns_.end() ? turns_.emplace_back() : *found;
          turn.push_back(each);
        }
      for (std::size_t t = before; t < turns_.size(); ++t) {
        std::ranges::sort(turns_[t]);
        for (const std::int32_t each : turns_[t]) turn_of_[at(each)] = t;
      }
    }
  }

  void lay_out_buckets(StepBuilder& step) {
    find_turns(step);
    std::int64_t held = 0;
    for (const std::vector<std::int32_t>& turn : turns_)
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

  // What a step uses, and when.

  /// The turns that come in the current layer; `one`: up to the next one with parameters. In
  /// backward a module's comes when the one before it has its gradients.
  void fetch_next(StepBuilder& step, Pass pass, bool one) {
    const bool is_forward = pass == Pass::forward;
    while (next_use_ < trace_.size() && is_forward == (next_use_ < uses_.size())) {
      const Use& use = uses_[trace_[next_use_]];
      if ((is_forward ? use.opened_at : use.closed_at) != layer_) return;
      fetch(step, use);
      ++next_use_;
      if (one && !use.parameters.empty()) return;
    }
  }

  void fetch(StepBuilder& step, const Use& use) {
    std::vector<std::int32_t> missing;
    for (const std::int32_t each : use.parameters)
      if (!is_available(each)) missing.push_back(each);
    if (!missing.empty()) gather(step, missing);
    for (const std::int32_t each : use.parameters)
      if (parameter(each).gather != nobody) take(step, at(parameter(each).gather));
    leave_in_queue(use);
    prefetch(step);
  }

  /// What the module uses is not gathered ahead any more.
  void leave_in_queue(const Use& use) {
    std::set<std::int32_t> expected;
    for (const std::int32_t each : use.parameters)
      if (passed_[at(each)] < next_use_ || next_use_ == 0) expected.insert(each);
    for (; next_in_queue_ < queue_.size() && !expected.empty(); ++next_in_queue_) {
      const auto& [each, used_at] = queue_[next_in_queue_];
      passed_[at(each)] = used_at;
      expected.erase(each);
    }
  }

  void prefetch(StepBuilder& step) {
    const std::int64_t most =
        std::min(settings_.max_live_parameters - live_, settings_.prefetch_bucket_size);
    std::vector<std::int32_t> ahead;
    std::int64_t elements = 0;
    for (; next_in_queue_ < queue_.size() && elements < most; ++next_in_queue_) {
      const auto& [each, used_at] = queue_[next_in_queue_];
      passed_[at(each)] = std::max(passed_[at(each)], used_at);
      if (is_available(each) || std::ranges::find(ahead, each) != ahead.end()) continue;
      ahead.push_back(each);
      elements += step.memory.elements(each);
    }
    if (!ahead.empty()) gather(step, ahead);
  }

  /// Behind the module: what is not used again soon.
  void release(StepBuilder& step, const Use& use) {
    for (const std::int32_t each : use.parameters) {
      if (parameter(each).persists || passed_[at(each)] > next_use_) continue;
      std::int64_t gone_by = 0;
      bool is_used_soon = false;
      for (std::size_t t = next_use_;
           t < trace_.size() && gone_by < settings_.max_reuse_distance && !is_used_soon; ++t)
        for (const std::int32_t other : uses_[trace_[t]].parameters) {
          is_used_soon = is_used_soon || other == each;
          gone_by += step.memory.elements(other);
        }
      if (is_used_soon || !std::exchange(parameter(each).is_there, false)) continue;
      step.writer.goes(parameter(each).whole, StepStream::compute);
      live_ -= step.memory.elements(each);
    }
  }

  // Gathers.

  /// Of the modules that begin there.
  void call_hooks(StepBuilder& step, Pass pass, std::size_t layer) const {
    for (const Use& use : uses_) {
      if ((pass == Pass::forward ? use.opened_at : use.closed_at) != layer) continue;
      const std::int32_t group =
          use.parameters.empty() ? nobody : group_of_[at(use.parameters.front())];
      Work work;
      work.operation = Operation::unit_hook;
      work.launches = hook_calls(use.parameters.size());
      step.writer.host_task(Operation::unit_hook, work,
                            program::Call{.what = program::Call::What::unit, .index = group},
                            {.group = group});
    }
  }

  void gather(StepBuilder& step, const std::vector<std::int32_t>& parameters) {
    StepWriter& writer = step.writer;
    for (; unfinished_.size() > most_unfinished; unfinished_.pop_front())
      if (aside_) writer.host_waits_for_collective(unfinished_.front(), nobody);
    const std::int32_t group = group_of_[at(parameters.front())];
    const auto number = static_cast<std::int32_t>(gathers_.size());
    Gather& made = gathers_.emplace_back();
    made.parameters = parameters;
    std::vector<Slice> parts;
    std::int64_t length = 0;
    for (const std::int32_t each : parameters) {
      parts.push_back(parameter(each).part);
      length += parts.back().count;
      writer.comes(parameter(each).whole, StepStream::compute);
      live_ += step.memory.elements(each);
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
             group_of_[at(each)], last);
      last = writer.newest();
    }
    if (aside_) writer.await(last);
  }

  // Reductions.

  /// A gradient's hook.
  void put_in(StepBuilder& step, std::int32_t each) {
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
  std::int16_t all_ = 0;                ///< the communicator
  bool aside_ = false;                  ///< gathers and reductions have streams of their own
  std::vector<Use> uses_;               ///< modules, as the forward pass comes to them
  std::vector<std::size_t> trace_;      ///< uses, forward and then backward
  std::vector<std::int32_t> group_of_;  ///< [parameter] its module's
  struct Queued {
    std::int32_t parameter = nobody;
    std::size_t used_at = 0;  ///< place in the trace
  };
  std::vector<Queued> queue_;        ///< what the trace uses, in order
  std::size_t next_in_queue_ = 0;    ///< the first that was not gathered, or passed by
  std::size_t layer_ = 0;            ///< the current one
  std::size_t next_use_ = 0;         ///< place in the trace
  std::vector<std::size_t> passed_;  ///< [parameter] the last use that the queue has passed by
  std::int64_t live_ = 0;            ///< elements of parameters that are whole for a while
  std::vector<Parted> parameters_;
  std::vector<Gather> gathers_;
  std::deque<std::int32_t> unfinished_;           ///< gathers that the host has not waited for
  std::vector<std::vector<std::int32_t>> turns_;  ///< gradients, as hooks take them
  std::vector<std::size_t> turn_of_;              ///< [parameter]
  std::vector<std::size_t> missing_;              ///< [turn] gradients still to come
  std::vector<GradientBucket> buckets_;           ///< in the order in which they are reduced
  std::int32_t filling_ = nobody, last_ = nobody;
  std::deque<std::int32_t> reductions_;
};

}  // namespace

std::unique_ptr<StrategyTasks> make_deepspeed_stage3() {
  return std::make_unique<DeepSpeed3>();
}

}  // namespace ddpsim
