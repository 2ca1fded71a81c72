// PyTorch 2's fully_shard. Ranks are in groups next to each other, one for each replica (without
// `replicate` all are one group), and each of a group's W ranks keeps one of W equal parts of each
// parameter. A unit is the parameters of one call; the root's are those that no other call took.
//
//     forward    before a unit's first kernel: pack the rank's parts (stream "copy in"), all-gather
//                (stream "gather"), copy the whole parameters out (compute). Behind its last kernel
//                they are freed, unless the unit is kept for the backward pass.
//     backward   before its first kernel: likewise, unless it is whole; then the all-gather of the
//                unit before it in the forward pass is issued, beside its kernels. Behind its last
//                one: free the parameters, pack the gradients (compute), reduce-scatter (stream
//                "scatter"), and all-reduce the result among replicas (stream "replicate"). A unit
//                whose inputs need no gradient does that when the backward pass has ended, and so
//                does the root.
//     optimizer  once all reduce-scatters have ended, on the rank's parts.
//
// All-gathers and reduce-scatters stand in one communicator, so one behind the other in the order
// of issue; all-reduces in another. On a synchronous device the host waits for each.
//
// Mixed precision: a rank's parts, their gradients and the optimizer's state are of the type that
// parameters are kept in. Parts are cast to `param_dtype` before they are packed; packing gradients
// casts them to `reduce_dtype`, and what a reduce-scatter gives is cast back on its stream. Where
// only the last micro-batch communicates, gradients are added up in `reduce_dtype`.
// Source: torch 2.13 distributed/fsdp/_fully_shard; rules F1-F70.

#include <algorithm>
#include <deque>
#include <ranges>

#include <fmt/format.h>

#include "model/parallel/policy/fsdp_layout.hpp"
#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

using program::Operands;
using program::Pass;
using program::Slice;

/// What a unit's hooks take of the host besides their kernels and collectives, in launches of a
/// kernel, for so many parameters. Measured with 12 of them on a virtual machine without a GPU:
/// 0.43, 0.06, 0.35 and 0.35 ms (rule F65: linear in the parameters, with a floor). That a launch
/// would take 11 us there, and how much of each is the floor, are assumptions.
constexpr std::int32_t pre_forward_calls(std::size_t parameters) {
  return 16 + 2 * static_cast<std::int32_t>(parameters);
}
constexpr std::int32_t post_forward_calls = 6;
constexpr std::int32_t backward_calls(std::size_t parameters) {
  return 8 + 2 * static_cast<std::int32_t>(parameters);
}

/// What kernels divide gradients by before their sum over the ranks and behind it, so that neither
/// overflows fp16 (rule F45). Of other types the reduce-scatter makes the mean.
struct Divisors {
  double before = 1, behind = 1;
};
constexpr Divisors divisors_for(std::int32_t ranks) {
  std::int32_t before = 1;
  while (ranks % before == 0 && ranks > before * before) before *= 2;
  return {static_cast<double>(before), static_cast<double>(ranks) / before};
}

/// A unit while a step is written.
struct Unit : ShardedUnit {
  bool is_whole = false;
  std::int32_t gathering = nobody;  ///< the all-gather that is under way
  bool had_pre_backward = false;
};

class Fsdp : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_fully_shard(step);
    ranks_ = step.writer.device.ranks / step.training.replicate;
    group_ = step.training.replicate == 1 ? 0 : ranks_;
    step.shards = ranks_;
    for (ShardedUnit& unit : sharded_units(step, ranks_, group_))
      units_.push_back({std::move(unit)});
    first_here_.resize(step.works.layers.size());
    last_here_.resize(step.works.layers.size());
    if (!step.works.layers.empty())
      for (Unit& unit : units_) {
        if (unit.is_root) continue;
        first_here_[unit.first].push_back(&unit);
        last_here_[unit.last].push_back(&unit);
      }
    find_upcasts(step);
    if (step.training.separate_reduce_scatter_group) step.writer.communicator(1, group_);
    if (replicates(step))
      step.writer.communicator(of_replicas(step), step.training.replicate, ranks_);
    if (!step.writer.device.synchronous)  // NCCL runs one collective of a communicator at a time
      for (program::Communicator& each : step.writer.memory.job.communicators) each.at_once = 1;
    for (const Unit& unit : units_)
      step.writer.memory.job.groups.push_back({unit.parameters, unit.size, name_of(step, unit)});
    if (!keeps_gradients(step)) step.memory.compute_in_place();
  }

  bool keeps_gradients(const StepBuilder& step) const override {
    return step.training.no_sync && !upcasts_;
  }

  void before_forward(StepBuilder& step) override {
    post_forward_.clear();
    gate_ = step.writer.last_kernel;
    last_copy_out_ = nobody;
    for (Unit& unit : units_) unit.had_pre_backward = false;
    if (root() != nullptr) pre_forward(step, *root());
  }

  void before_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    if (pass == Pass::forward) {
      for (Unit* unit : first_here_[layer]) pre_forward(step, *unit);
      return;
    }
    if (layer + 1 == step.works.layers.size() && root() != nullptr) pre_backward(step, *root());
    for (Unit* unit : last_here_[layer] | std::views::reverse) pre_backward(step, *unit);
    for (const auto& completed : step.works.layers[layer].completes)
      for (const std::int32_t each : completed) gradient_comes(step, each);
  }

  void after_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    const bool is_last = pass == Pass::forward ? layer + 1 == step.works.layers.size() : layer == 0;
    if (pass == Pass::forward) {
      for (Unit* unit : last_here_[layer]) post_forward(step, *unit);
    } else {
      for (Unit* unit : first_here_[layer] | std::views::reverse)
        if (!unit->is_late) post_backward(step, *unit);
    }
    if (pass == Pass::backward && step.writer.micro_batch > 0 && keeps_gradients(step))
      for (const auto& completed : step.works.layers[layer].completes)
        for (const std::int32_t each : completed)  // it has been added to those before
          step.writer.goes(step.memory.computed(each), StepStream::compute);
    if (!is_last) return;
    if (pass == Pass::forward)
      end_forward(step);
    else
      end_backward(step);
  }

  /// F44: each rank has the norm of its parts.
  void norm_found(StepBuilder& step) override {
    step.writer.await(
        step.writer.announce(Operation::all_reduce, Message::norm, size_of(DType::fp32), group_));
  }

 private:
  Unit* root() { return !units_.empty() && units_.front().is_root ? &units_.front() : nullptr; }

  /// F51. Where a micro-batch does not communicate, its gradients are cast to the type in which
  /// they will be sent, if that is another one.
  void find_upcasts(StepBuilder& step) {
    if (!step.training.no_sync || step.training.micro_batches == 1) return;
    const auto upcasts = [](const Unit& unit) {
      return !unit.reduced.empty() && unit.sent != unit.whole;
    };
    upcasts_ = std::ranges::any_of(units_, upcasts);
    if (!upcasts_) return;
    for (const Unit& unit : units_)
      if (!unit.reduced.empty() && !upcasts(unit))
        check(
            Refusal{"training.mp_policy",
                    fmt::format("gradients of {} come in reduce_dtype, and those of other units do "
                                "not: with no_sync that is not modelled; write param_dtype too",
                                name_of(step, unit)),
                    {}});
    added_up_.resize(step.works.parameters());
    for (const Unit& unit : units_)
      for (const std::int32_t each : unit.reduced)
        added_up_[at(each)] =
            step.writer.memory.add("added up", each, program::Holds::gradient, unit.sent,
                                   step.memory.elements(each), program::Life::held);
  }

  // Forward.

  void pre_forward(StepBuilder& step, Unit& unit) {
    call_hook(step, unit, "pre-forward", pre_forward_calls(unit.parameters.size()));
    if (unit.is_whole) return;
    if (unit.gathering == nobody) all_gather(step, unit);
    // F21, F22: the streams of gathers wait for the copy-out before, and its input is free then.
    if (last_copy_out_ != nobody) gate_ = last_copy_out_;
    let_go_of_gathered(step);
    copy_out(step, unit);
    gathered_ = &unit;
  }

  void post_forward(StepBuilder& step, Unit& unit) {
    call_hook(step, unit, "post-forward", post_forward_calls);
    post_forward_.push_back(&unit);
    if (unit.resharded) free_parameters(step, unit);
  }

  void end_forward(StepBuilder& step) {
    if (root() != nullptr) post_forward(step, *root());
    if (last_copy_out_ != nobody) gate_ = last_copy_out_;
    let_go_of_gathered(step);
  }

  void let_go_of_gathered(StepBuilder& step) {
    if (gathered_ != nullptr) step.writer.goes(gathered_->gathered, StepStream::copy_in);
    gathered_ = nullptr;
  }

  // Backward.

  void pre_backward(StepBuilder& step, Unit& unit) {
    if (std::exchange(unit.had_pre_backward, true)) return;
    call_hook(step, unit, "pre-backward", backward_calls(unit.parameters.size()));
    if (!unit.is_whole) {
      if (unit.gathering == nobody) all_gather(step, unit);
      copy_out(step, unit);
      step.writer.goes(unit.gathered, StepStream::copy_in);
      gate_ = last_copy_out_;
    }
    const auto found = std::ranges::find(post_forward_, &unit);
    if (found == post_forward_.end() || found == post_forward_.begin()) return;
    Unit& before = **std::prev(found);
    if (!before.is_whole && before.gathering == nobody) all_gather(step, before);
  }

  void post_backward(StepBuilder& step, Unit& unit) {
    call_hook(step, unit, "post-backward", backward_calls(unit.parameters.size()));
    if (upcasts_ && step.writer.micro_batch > 0) add_up(step, unit);
    if (unit.is_whole) free_parameters(step, unit);
    if (step.synced && !unit.reduced.empty()) reduce_scatter(step, unit);
    if (upcasts_ && step.writer.micro_batch == 0) upcast(step, unit);
  }

  /// Of the first micro-batch.
  void upcast(StepBuilder& step, const Unit& unit) {
    const Bytes both = size_of(unit.whole) + size_of(unit.sent);
    for (const std::int32_t each : unit.reduced) {
      const Slice gradient = step.memory.where(each);
      step.writer.comes(added_up_[at(each)], StepStream::compute);
      step.writer.kernel_task(
          Operation::cast, moving(Operation::cast, gradient.count * both, Caller::python_loop),
          program::Cast{.to = added_up_[at(each)], .from = gradient}, {.parameter = each});
      step.writer.goes(gradient, StepStream::compute);
    }
  }

  /// Of a later one.
  void add_up(StepBuilder& step, const Unit& unit) {
    const Bytes all = size_of(unit.whole) + 2 * size_of(unit.sent);
    for (const std::int32_t each : unit.reduced) {
      const Slice gradient = step.memory.where(each), sum = added_up_[at(each)];
      step.writer.kernel_task(
          Operation::accumulate,
          moving(Operation::accumulate, gradient.count * all, Caller::python_loop),
          program::Combine{.to = sum, .left = sum, .right = gradient}, {.parameter = each});
      step.writer.goes(gradient, StepStream::compute);
    }
  }

  /// The callback when the backward pass has ended.
  void end_backward(StepBuilder& step) {
    for (Unit& unit : units_)
      if (unit.is_late) post_backward(step, unit);
    if (last_scattered_ != nobody) step.writer.await(last_scattered_);
    last_scattered_ = nobody;
    scattering_.clear();
    for (const Slice& each : reduced_) step.writer.goes(each, StepStream::scatter);
    reduced_.clear();
    while (!inputs_.empty()) {
      step.writer.goes(inputs_.front()->scattered, StepStream::compute);
      inputs_.pop_front();
    }
  }

  void gradient_comes(StepBuilder& step, std::int32_t parameter) {
    step.writer.comes(step.memory.computed(parameter), StepStream::compute);
  }

  void reduce_scatter(StepBuilder& step, Unit& unit) {
    StepWriter& writer = step.writer;
    const auto most = static_cast<std::size_t>(step.training.reduce_scatter_max_input_buffers);
    while (inputs_.size() >= most) {  // F36
      writer.await(scattering_.front(), inputs_.front()->number);
      writer.goes(inputs_.front()->scattered, StepStream::compute);
      inputs_.pop_front();
      scattering_.pop_front();
    }
    writer.comes(unit.scattered, StepStream::compute);
    std::vector<Slice> gradients;
    for (const std::int32_t each : unit.reduced)
      gradients.push_back(upcasts_ ? added_up_[at(each)] : step.memory.where(each));
    program::Chunk chunk;
    chunk.to = unit.scattered;
    chunk.places = unit.scatter_places;
    chunk.from = writer.memory.list(gradients);
    chunk.parts = ranks_;
    const Bytes sent = unit.scattered.count * size_of(unit.sent);
    const Bytes read = unit.scattered.count * size_of(upcasts_ ? unit.sent : unit.whole);
    writer.kernel_task(Operation::pack, moving(Operation::pack, read + sent), chunk,
                       origin_of(step, unit, "reduce-scatter copy-in"));
    for (const Slice& each : gradients) writer.goes(each, StepStream::compute);
    const bool adds = writer.micro_batch > 0 && unit.partial.count > 0;
    const Slice result = adds ? unit.partial : unit.gradient;
    const Slice received = unit.received.empty() ? result : unit.received;
    const bool divides = unit.sent == DType::fp16;
    const Divisors divisors = divides ? divisors_for(writer.device.ranks) : Divisors{};
    const std::int32_t packed = writer.last_kernel;
    last_scattered_ = packed;
    if (!unit.received.empty()) writer.comes(unit.received, StepStream::scatter);
    divide(step, unit, unit.scattered, divisors.before, StepStream::scatter);
    StepWriter::Sending sending;
    sending.stream = stream(step, StepStream::scatter);
    sending.work.operation = Operation::reduce_scatter;
    sending.work.payload = sent;
    sending.work.handed_over = true;
    sending.work.communicator = step.training.separate_reduce_scatter_group ? 1 : 0;
    sending.work.group = group_;
    sending.what.what = program::Collectives::reduce_scatter;
    sending.what.reduction = divides ? program::Reduction::sum : program::Reduction::mean;
    sending.what.from = unit.scattered;
    sending.what.to = received;
    sending.of.group = unit.number;
    sending.input = writer.device.synchronous ? writer.last_kernel : last_scattered_;
    sending.ready = packed;
    last_scattered_ = writer.send(sending);
    inputs_.push_back(&unit);
    scattering_.push_back(last_scattered_);
    if (writer.device.synchronous) writer.await(last_scattered_, unit.number);
    if (replicates(step)) all_reduce(step, unit, received, divides);
    divide(step, unit, received, divisors.behind, behind_sums(step));
    if (!unit.received.empty()) {
      behind(step, behind_sums(step),
             moving(Operation::cast, result.count * (size_of(unit.sent) + size_of(unit.kept))),
             program::Cast{.to = result, .from = unit.received},
             origin_of(step, unit, "reduce-scatter cast"));
      // F55: an all-reduce's memory is held until backward has ended.
      if (replicates(step))
        reduced_.push_back(unit.received);
      else
        writer.goes(unit.received, StepStream::scatter);
    }
    // What an earlier micro-batch left is added to.
    if (adds)
      behind(step, behind_sums(step),
             moving(Operation::accumulate, 3 * unit.gradient.count * size_of(unit.kept)),
             program::Combine{.to = unit.gradient, .left = unit.gradient, .right = unit.partial},
             {.group = unit.number});
  }

  /// F55: the sum of all replicas' parts, or their mean.
  void all_reduce(StepBuilder& step, const Unit& unit, const Slice& part, bool divides) {
    StepWriter& writer = step.writer;
    StepWriter::Sending sending;
    sending.stream = stream(step, StepStream::replicate);
    sending.work.payload = part.count * size_of(unit.sent);
    sending.work.operation = Operation::all_reduce;
    sending.work.handed_over = true;
    sending.work.communicator = of_replicas(step);
    sending.work.group = step.training.replicate;
    sending.work.stride = ranks_;
    sending.what.what = program::Collectives::all_reduce;
    sending.what.reduction = divides ? program::Reduction::sum : program::Reduction::mean;
    sending.what.from = sending.what.to = part;
    sending.of.group = unit.number;
    sending.input = sending.ready = last_scattered_;
    last_scattered_ = writer.send(sending);
    if (writer.device.synchronous) writer.await(last_scattered_, unit.number);
  }

  static bool replicates(const StepBuilder& step) { return step.training.replicate > 1; }
  /// The queue of all-reduces among replicas.
  static std::uint8_t of_replicas(const StepBuilder& step) {
    return step.training.separate_reduce_scatter_group ? 2 : 1;
  }
  /// Where kernels run on what all ranks' gradients have been reduced to.
  static StepStream behind_sums(const StepBuilder& step) {
    return replicates(step) ? StepStream::replicate : StepStream::scatter;
  }

  void divide(StepBuilder& step, const Unit& unit, const Slice& what, double divisor,
              StepStream on) {
    if (divisor == 1) return;
    behind(step, on, moving(Operation::divide, 2 * what.count * size_of(unit.sent)),
           program::Scale{.to = what, .from = what, .factor = static_cast<float>(1 / divisor)},
           {.group = unit.number});
  }

  /// Behind what is there of this reduction.
  void behind(StepBuilder& step, StepStream on, const Work& work, const program::Action& action,
              const program::Origin& origin) {
    StepWriter& writer = step.writer;
    if (writer.device.synchronous) return writer.kernel_task(work.operation, work, action, origin);
    writer.add(work.operation, on, writer.number_of(work), action, origin);
    writer.depend(last_scattered_);
    last_scattered_ = writer.newest();
  }

  // Both.

  /// F12, F13.
  void all_gather(StepBuilder& step, Unit& unit) {
    StepWriter& writer = step.writer;
    std::vector<Slice> parts;
    for (const std::int32_t each : unit.parameters) parts.push_back(step.memory.shard_of(each));
    if (!unit.cast_parts.empty()) cast_parts(step, unit, parts);
    writer.comes(unit.gathered, StepStream::copy_in);
    const Bytes part = unit.part.count * size_of(unit.whole);
    Work copy = moving(Operation::pack, 2 * part);
    const Operands to = writer.memory.list({unit.part});
    writer.add(Operation::pack, stream(step, StepStream::copy_in), writer.number_of(copy),
               program::Pack{.to = to, .from = writer.memory.list(parts)},
               origin_of(step, unit, "all-gather copy-in"));
    if (gate_ != nobody) writer.depend(gate_);
    StepWriter::Sending sending;
    sending.stream = stream(step, StepStream::gather);
    sending.work.operation = Operation::all_gather;
    sending.work.message = Message::parameters;
    sending.work.payload = part;
    sending.work.group = group_;
    sending.work.handed_over = true;
    sending.what.what = program::Collectives::all_gather;
    sending.what.from = unit.part;
    sending.what.to = unit.gathered;
    sending.of.group = unit.number;
    sending.input = sending.ready = writer.newest();
    unit.gathering = writer.send(sending);
    if (!unit.cast_parts.empty()) writer.goes(unit.cast_parts, StepStream::copy_in);
    if (writer.device.synchronous) writer.await(unit.gathering, unit.number);
  }

  /// All parts into one piece, of which `parts` become the places.
  void cast_parts(StepBuilder& step, const Unit& unit, std::vector<Slice>& parts) const {
    StepWriter& writer = step.writer;
    writer.comes(unit.cast_parts, StepStream::copy_in);
    std::vector<Slice> cast;
    std::int64_t begin = 0;
    for (const Slice& each : parts) {
      cast.push_back({unit.cast_parts.buffer, program::nowhere, begin, each.count});
      begin += each.count;
    }
    const Work work =
        moving(Operation::cast, unit.cast_parts.count * (size_of(unit.kept) + size_of(unit.whole)));
    const Operands to = writer.memory.list(cast);
    writer.add(Operation::cast, stream(step, StepStream::copy_in), writer.number_of(work),
               program::Pack{.to = to, .from = writer.memory.list(parts)},
               origin_of(step, unit, "all-gather cast"));
    if (gate_ != nobody) writer.depend(gate_);
    parts = {unit.cast_parts};
  }

  /// F15.
  void copy_out(StepBuilder& step, Unit& unit) {
    StepWriter& writer = step.writer;
    std::vector<Slice> whole;
    for (const std::int32_t each : unit.parameters) whole.push_back(step.memory.weight(each));
    for (const Slice& each : whole) writer.comes(each, StepStream::compute);
    program::Unchunk unchunk;
    unchunk.to = writer.memory.list(whole);
    unchunk.places = unit.places;
    unchunk.from = unit.gathered;
    unchunk.parts = ranks_;
    Work work = moving(Operation::pack, 2 * unit.gathered.count * size_of(unit.whole));
    work.message = Message::parameters;
    writer.kernel_task(Operation::pack, work, unchunk,
                       origin_of(step, unit, "all-gather copy-out"));
    writer.depend(unit.gathering);
    unit.gathering = nobody;
    unit.is_whole = true;
    last_copy_out_ = writer.newest();
  }

  void free_parameters(StepBuilder& step, Unit& unit) {
    for (const std::int32_t each : unit.parameters)
      step.writer.goes(step.memory.weight(each), StepStream::compute);
    unit.is_whole = false;
  }

  static StepStream stream(const StepBuilder& step, StepStream on_gpus) {
    if (!step.writer.device.synchronous) return on_gpus;
    return on_gpus == StepStream::copy_in ? StepStream::host : StepStream::communication;
  }

  static program::Origin origin_of(StepBuilder& step, const Unit& unit, std::string_view label) {
    program::Origin origin;
    origin.group = unit.number;
    origin.label = step.writer.memory.label(label);
    return origin;
  }

  static void call_hook(StepBuilder& step, const Unit& unit, std::string_view label,
                        std::int32_t calls) {
    Work work;
    work.operation = Operation::unit_hook;
    work.launches = calls;
    step.writer.host_task(Operation::unit_hook, work,
                          program::Call{.what = program::Call::What::unit, .index = unit.number},
                          origin_of(step, unit, label));
  }

  int ranks_ = 1;            ///< that share a parameter
  int group_ = 0;            ///< as in Work: they, or all
  std::vector<Unit> units_;  ///< the root's first, if it has parameters
  std::vector<std::vector<Unit*>> first_here_, last_here_;  ///< [layer] units but the root
  std::vector<Unit*> post_forward_;  ///< in the order in which their forward passes ended
  std::int32_t gate_ = nobody;       ///< the task that the next copy-in waits for
  std::int32_t last_copy_out_ = nobody;
  Unit* gathered_ = nullptr;  ///< whose gathered parameters are still held in forward
  std::deque<Unit*> inputs_;  ///< of reduce-scatters, still held
  std::deque<std::int32_t> scattering_;
  std::int32_t last_scattered_ = nobody;  ///< the newest task of a reduce-scatter
  std::vector<Slice> reduced_;            ///< what all-reduces worked on, still held
  bool upcasts_ = false;         ///< gradients wait for the last micro-batch in another type
  std::vector<Slice> added_up_;  ///< [parameter] in that type; empty: nothing waits
};

}  // namespace

std::unique_ptr<StrategyTasks> make_fsdp() {
  return std::make_unique<Fsdp>();
}

}  // namespace ddpsim
