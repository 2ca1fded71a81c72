// PyTorch 2's fully_shard. Ranks are in groups next to each other, one for each replica (without
// `replicate` all are one group), and each of a group's W ranks keeps one of W equal parts of each
// parameter. A unit is the parameters of one call; the root's are those that no other call took.
//
//     forward    before a unit's first kernel: pack the rank's parts (stream "copy in"), all-gather
//                (stream "gather"), copy the whole parameters out (compute). Behind its last kernel
//                they are freed, unless the unit is kept for the backward pass; or each of N
//                neighbours keeps one of N parts, which they gather in backward.
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
//
// CPU offload: parts, their gradients and the optimizer are on the host. Parts are copied to the
// device before they are packed, and gradients back behind their reduce-scatter.
// Source: torch 2.13 distributed/fsdp/_fully_shard; rules F1-F70.

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "model/parallel/policy/fsdp_gather.hpp"
#include "model/parallel/policy/fsdp_reduce.hpp"
#include "model/parallel/policy/fsdp_refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

using program::Pass;

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

/// Units as they begin in a pass, and as they end, by kernels of the pass; the root's only as it
/// begins in backward.
struct Turns {
  struct Turn {
    std::int32_t kernel = 0;
    StepUnit* unit = nullptr;
  };
  std::vector<Turn> begins, ends;
  std::size_t next_begin = 0, next_end = 0;

  StepUnit* begins_by(std::int32_t kernel) { return next(begins, next_begin, kernel); }
  StepUnit* ends_by(std::int32_t kernel) { return next(ends, next_end, kernel); }

 private:
  static StepUnit* next(const std::vector<Turn>& turns, std::size_t& place, std::int32_t kernel) {
    if (place == turns.size() || turns[place].kernel > kernel) return nullptr;
    return turns[place++].unit;
  }
};

class Fsdp : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_fsdp(step);
    const std::int32_t ranks = step.writer.device.ranks / step.training.replicate;
    group_ = step.training.replicate == 1 ? 0 : ranks;
    step.shards = ranks;
    for (ShardedUnit& unit : sharded_units(step, ranks, group_))
      units_.push_back({std::move(unit)});
    gathers_.emplace(ranks, group_);
    reductions_.emplace(ranks, group_);
    find_turns(step.works);
    reductions_->find_upcasts(step, units_);
    step.writer.communicator(queue_of_scatters(step), group_);
    if (step.training.replicate > 1)
      step.writer.communicator(queue_of_replicas(step), step.training.replicate, ranks);
    if (!step.writer.device.synchronous)  // NCCL runs one collective of a communicator at a time
      for (program::Communicator& each : step.writer.memory.job.communicators) each.at_once = 1;
    for (const StepUnit& unit : units_)
      step.writer.memory.job.groups.push_back({unit.parameters, unit.size, name_of(step, unit)});
    if (!keeps_gradients(step)) step.memory.compute_in_place();
  }

  bool keeps_gradients(const StepBuilder& step) const override {
    return step.training.no_sync && !(reductions_ && reductions_->upcasts());
  }

  bool listens_to_kernels() const override { return true; }

  void before_forward(StepBuilder& step) override {
    for (Turns* each : {&forward_, &backward_}) each->next_begin = each->next_end = 0;
    post_forward_.clear();
    gathers_->begin_forward(step);
    for (StepUnit& unit : units_) unit.had_pre_backward = false;
    if (root() != nullptr) pre_forward(step, *root());
  }

  void before_kernel(StepBuilder& step, const PassKernel& kernel) override {
    begin_units(step, kernel.pass, kernel.number);
    if (kernel.pass == Pass::backward) step.gradients_come(kernel.layer, kernel.kernel);
  }

  void after_kernel(StepBuilder& step, const PassKernel& kernel) override {
    end_units(step, kernel.pass, kernel.number);
  }

  void after_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    if (pass == Pass::forward) {
      if (layer + 1 == step.works.layers.size()) end_forward(step);
      return;
    }
    if (step.writer.micro_batch > 0 && keeps_gradients(step))
      for (const auto& completed : step.works.layers[layer].completes)
        for (const std::int32_t each : completed)  // it has been added to those before
          step.writer.goes(step.memory.computed(each), StepStream::compute);
    if (layer == 0) end_backward(step);
  }

  /// F44: each rank has the norm of its parts.
  void norm_found(StepBuilder& step) override {
    step.writer.await(
        step.writer.announce(Operation::all_reduce, Message::norm, size_of(DType::fp32), group_));
  }

 private:
  StepUnit* root() { return !units_.empty() && units_.front().is_root ? &units_.front() : nullptr; }

  /// A unit whose modules contain another's begins before it in forward, and ends behind it in
  /// both passes. In backward units begin as gradients of their outputs come. What is the output of
  /// several units, one in the other, has their hooks in the order in which their forward passes
  /// ended. Others that begin, or end, with the same kernel do so in the order of the forward pass,
  /// or the reverse of it.
  void find_turns(const StepWorks& works) {
    for (StepUnit& unit : units_) {
      if (unit.is_root) {
        if (works.layers.empty()) continue;
        unit.depth = -1;
        unit.forward.last = works.layers.back().forward_kernels.last;
        unit.backward.first = works.layers.back().backward_kernels.first;
      } else {
        forward_.begins.push_back({unit.forward.first, &unit});
        forward_.ends.push_back({unit.forward.last, &unit});
        backward_.ends.push_back({unit.backward.last, &unit});
      }
      backward_.begins.push_back({unit.backward.first, &unit});
    }
    using Turn = Turns::Turn;
    std::ranges::sort(forward_.begins, {}, [](const Turn& each) {
      return std::tuple(each.kernel, each.unit->depth, each.unit->number);
    });
    std::ranges::sort(forward_.ends, {}, [](const Turn& each) {
      return std::tuple(each.kernel, -each.unit->depth, each.unit->number);
    });
    std::ranges::sort(backward_.begins, {}, [](const Turn& each) {
      const StepUnit& unit = *each.unit;
      return std::tuple(each.kernel, -unit.forward.last, -unit.depth, -unit.number);
    });
    std::ranges::sort(backward_.ends, {}, [](const Turn& each) {
      return std::tuple(each.kernel, -each.unit->depth, -each.unit->number);
    });
  }

  void begin_units(StepBuilder& step, Pass pass, std::int32_t kernel) {
    if (pass == Pass::forward)
      while (StepUnit* unit = forward_.begins_by(kernel)) pre_forward(step, *unit);
    else
      while (StepUnit* unit = backward_.begins_by(kernel)) pre_backward(step, *unit);
  }

  void end_units(StepBuilder& step, Pass pass, std::int32_t kernel) {
    if (pass == Pass::forward) {
      while (StepUnit* unit = forward_.ends_by(kernel)) post_forward(step, *unit);
      return;
    }
    while (StepUnit* unit = backward_.ends_by(kernel))
      if (!unit->is_late) post_backward(step, *unit);
  }

  /// Of the units of layers at the end of a pass that run no kernel in it.
  void end_pass(StepBuilder& step, Pass pass) {
    constexpr std::int32_t all = std::numeric_limits<std::int32_t>::max();
    begin_units(step, pass, all);
    end_units(step, pass, all);
  }

  // Forward.

  void pre_forward(StepBuilder& step, StepUnit& unit) {
    call_hook(step, unit, "pre-forward", pre_forward_calls(unit.members.size()));
    if (!unit.is_whole) {
      gathers_->gather(step, unit);
      gathers_->copy_out_in_forward(step, unit);
    }
    for (const std::int32_t each : unit.forward_prefetch) gathers_->gather(step, units_[at(each)]);
  }

  void post_forward(StepBuilder& step, StepUnit& unit) {
    call_hook(step, unit, "post-forward", post_forward_calls);
    post_forward_.push_back(&unit);
    if (unit.resharded) gathers_->reshard(step, unit);
  }

  void end_forward(StepBuilder& step) {
    end_pass(step, Pass::forward);
    if (root() != nullptr) post_forward(step, *root());
    gathers_->end_forward(step);
  }

  // Backward.

  void pre_backward(StepBuilder& step, StepUnit& unit) {
    if (!unit.has_backward || std::exchange(unit.had_pre_backward, true)) return;
    call_hook(step, unit, "pre-backward", backward_calls(unit.members.size()));
    gather_in_backward(step, unit);
    if (unit.gathering != nobody) gathers_->copy_out_in_backward(step, unit);
    for (const std::int32_t each : unit.backward_prefetch)
      gather_in_backward(step, units_[at(each)]);
    if (!unit.backward_prefetch.empty()) return;
    const auto found = std::ranges::find(post_forward_, &unit);
    if (found != post_forward_.end() && found != post_forward_.begin())
      gather_in_backward(step, **std::prev(found));
  }

  void gather_in_backward(StepBuilder& step, StepUnit& unit) {
    if (unit.unshard_in_backward) gathers_->gather(step, unit);
  }

  void post_backward(StepBuilder& step, StepUnit& unit) {
    call_hook(step, unit, "post-backward", backward_calls(unit.members.size()));
    const std::int16_t micro_batch = step.writer.micro_batch;
    if (reductions_->upcasts() && micro_batch > 0) reductions_->add_up(step, unit);
    const bool is_last = micro_batch + 1 == step.training.micro_batches;
    if (is_last || step.training.reshard_after_backward) gathers_->free(step, unit);
    if (step.synced && !unit.reduced.empty()) reductions_->reduce_scatter(step, unit);
    if (reductions_->upcasts() && micro_batch == 0) reductions_->upcast(step, unit);
  }

  /// The callback when the backward pass has ended.
  void end_backward(StepBuilder& step) {
    end_pass(step, Pass::backward);
    for (StepUnit& unit : units_)
      if (unit.is_late) post_backward(step, unit);
    reductions_->end_backward(step);
    for (StepUnit& unit : units_) gathers_->drop(step, unit);
  }

  static void call_hook(StepBuilder& step, const ShardedUnit& unit, std::string_view label,
                        std::int32_t calls) {
    Work work;
    work.operation = Operation::unit_hook;
    work.launches = calls;
    step.writer.host_task(Operation::unit_hook, work,
                          program::Call{.what = program::Call::What::unit, .index = unit.number},
                          origin_of(step, unit, label));
  }

  std::int32_t group_ = 0;       ///< as in Work: the ranks that share a parameter, or all
  std::vector<StepUnit> units_;  ///< the root's first, if it has parameters
  Turns forward_, backward_;
  std::vector<StepUnit*> post_forward_;  ///< in the order in which their forward passes ended
  std::optional<FsdpGathers> gathers_;
  std::optional<FsdpReductions> reductions_;
};

}  // namespace

std::unique_ptr<StrategyTasks> make_fsdp() {
  return std::make_unique<Fsdp>();
}

}  // namespace ddpsim
