// PyTorch's FullyShardedDataParallel (FSDP1). The parameters of a wrapped module that no module
// wrapped within it has lie in one flat parameter, of which each of W ranks keeps one of W equal
// parts, cut by elements.
//
//     forward    before a unit's first kernel: all-gather its flat parameter (stream "gather"), on
//                which the kernels work as it lies: nothing is packed or copied out. Behind its
//                last kernel it is freed, but for the root's, or under SHARD_GRAD_OP kept.
//     backward   before its first kernel: likewise, unless it is whole; then the gather of the unit
//                before it in the forward pass is issued (BACKWARD_PRE). Autograd puts the
//                gradients together once all are there, and the unit's kernels have run: free the
//                parameter, issue the gather of the unit before (BACKWARD_POST), divide the
//                gradient, reduce-scatter it, divide the result (stream "scatter").
//     optimizer  once all reduce-scatters have ended, on the rank's parts.
//
// Kernels wait for no reduce-scatter. The host waits (limit_all_gathers): a parameter that is freed
// leaves an event behind the kernels so far, and who gathers, or would if the parameter were not
// whole, takes the oldest of at least two such events and waits for it.
//
// Autograd runs what is ready by the time at which the forward pass came to it, the latest first. A
// unit's gradients are put together by what made its parameters views, when it was gathered. With
// forward_prefetch that is before the unit in front of it ran: so its post-backward hook comes
// behind that unit's backward pass, and the gather of one unit more is issued before its
// reduce-scatter.
//
// The order in which units run is taken to be known: the first iteration, which records it, gathers
// nothing ahead in forward.
// Source: torch 2.13 distributed/fsdp/_runtime_utils.py, _flat_param.py; rules F72-F78.

#include <algorithm>
#include <deque>
#include <ranges>
#include <utility>
#include <vector>

#include "model/parallel/policy/fsdp1_layout.hpp"
#include "model/parallel/policy/fsdp1_reduce.hpp"
#include "model/parallel/policy/fsdp_gather.hpp"
#include "model/parallel/policy/fsdp_reduce.hpp"
#include "model/parallel/policy/fsdp_refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

using program::Pass;
using program::Slice;

/// What a hook takes of the host besides its kernels and collectives, in launches of a kernel.
struct HookCalls {
  std::int32_t always = 0;
  std::int32_t for_ten_parameters = 0;

  std::int32_t of(std::int32_t parameters) const {
    return always + for_ten_parameters * parameters / 10;
  }
};
struct CallsOfHooks {
  HookCalls pre_forward, post_forward, pre_backward, post_backward;
};
/// In proportion to what is assumed of fully_shard's hooks (fsdp.cpp), beside which they were
/// measured with 12 and 48 parameters on a virtual machine without a GPU: of 12 they took 0.6, 0.8,
/// 0.4 and 0.6 of those; with use_orig_params, which makes views in each hook, 0.9, 1.8, 1.2, 1.1.
constexpr CallsOfHooks usual_calls{{17, 7}, {5, 0}, {11, 1}, {16, 3}};
constexpr CallsOfHooks calls_with_originals{{35, 2}, {11, 0}, {37, 4}, {34, 4}};

/// A unit while a step is written.
struct FlatStepUnit : FlatUnit {
  bool is_whole = false;
  bool is_again = false;            ///< it lies, or will lie, in the second of `whole`
  std::int32_t gathering = nobody;  ///< the all-gather that is under way
  bool is_ahead = false;            ///< gathered ahead, and not freed since
  bool had_forward = false, had_pre_backward = false, had_post_backward = false;
  bool needs_backward = false;  ///< its pre-backward hook is still to come
};

/// Events of flat parameters that were freed, as the host will wait for them.
class FreedEvents {
 public:
  /// What is behind the kernels that were enqueued so far.
  void add(std::int32_t kernel) { events_.push_back(kernel); }
  /// The one to wait for before a gather; nobody: none, or one of an earlier step.
  std::int32_t take() {
    if (events_.size() < most_in_flight) return nobody;
    const std::int32_t event = events_.front();
    events_.pop_front();
    return event;
  }
  std::size_t size() const { return events_.size(); }
  void are_of_earlier_step() { std::ranges::fill(events_, nobody); }

 private:
  static constexpr std::size_t most_in_flight = 2;
  std::deque<std::int32_t> events_;
};

class Fsdp1 : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_fsdp(step);
    settings_ = step.training.fsdp;
    calls_ = settings_.use_orig_params ? calls_with_originals : usual_calls;
    const std::int32_t ranks = step.writer.device.ranks / step.training.replicate;
    group_ = step.training.replicate == 1 ? 0 : ranks;
    step.shards = ranks;
    for (FlatUnit& unit : flat_units(step, ranks, group_)) units_.push_back({std::move(unit)});
    for (FlatStepUnit& unit : units_) unit.is_whole = unit.stays_whole;
    reductions_ = FlatReductions(ranks, group_);
    find_places(step);
    if (replicates(step))
      step.writer.communicator(queue_of_replicas(step), step.training.replicate, ranks);
    if (!step.writer.device.synchronous)  // NCCL runs one collective of a communicator at a time
      for (program::Communicator& each : step.writer.memory.job.communicators) each.at_once = 1;
    step.memory.compute_in_place();
    find_freed_events(step);
  }

  bool keeps_gradients(const StepBuilder&) const override { return false; }

  void before_forward(StepBuilder& step) override {
    behind_ = step.writer.last_kernel;
    post_forward_.clear();
    for (FlatStepUnit& unit : units_)
      unit.had_forward = unit.had_pre_backward = unit.had_post_backward = unit.is_ahead = false;
    if (root() != nullptr) pre_forward(step, *root());
  }

  void before_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    if (pass == Pass::forward) {
      for (FlatStepUnit* unit : first_here_[layer]) pre_forward(step, *unit);
      return;
    }
    if (layer + 1 == step.works.layers.size() && root() != nullptr) pre_backward(step, *root());
    for (FlatStepUnit* unit : last_here_[layer] | std::views::reverse) pre_backward(step, *unit);
    if (is_counting_) return;
    for (const auto& completed : step.works.layers[layer].completes)
      for (const std::int32_t each : completed)
        step.writer.comes(step.memory.computed(each), StepStream::compute);
  }

  void after_layer(StepBuilder& step, Pass pass, std::size_t layer) override {
    if (pass == Pass::forward) {
      for (FlatStepUnit* unit : last_here_[layer]) post_forward(step, *unit);
      if (layer + 1 == step.works.layers.size() && root() != nullptr) post_forward(step, *root());
      return;
    }
    for (FlatStepUnit* unit : ends_here_[layer]) end_backward(step, *unit);
    if (layer == 0) end_backward(step);
  }

  /// Each rank has the norm of its parts.
  void norm_found(StepBuilder& step) override {
    step.writer.await(
        step.writer.announce(Operation::all_reduce, Message::norm, size_of(DType::fp32), group_));
  }

 private:
  FlatStepUnit* root() {
    return !units_.empty() && units_.front().is_root ? &units_.front() : nullptr;
  }
  bool frees_after_forward() const {
    return ddpsim::frees_after_forward(settings_.sharding_strategy);
  }

  // Where units begin and end.

  void find_places(const StepBuilder& step) {
    const std::size_t layers = step.works.layers.size();
    first_here_.resize(layers);
    last_here_.resize(layers);
    ends_here_.resize(layers);
    if (layers == 0) return;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      FlatStepUnit& unit = units_[u];
      if (!unit.is_root) {
        first_here_[unit.first].push_back(&unit);
        last_here_[unit.last].push_back(&unit);
      }
      // Behind the kernels of all that ran since its parameters were made views.
      const FlatStepUnit& from = settings_.forward_prefetch && u > 0 ? units_[u - 1] : unit;
      ends_here_[from.is_root ? 0 : from.first].push_back(&unit);
    }
    for (std::vector<FlatStepUnit*>& each : ends_here_) std::ranges::reverse(each);
  }

  /// How many events of earlier steps a step finds: as many as it leaves.
  void find_freed_events(StepBuilder& step) {
    if (!settings_.limit_all_gathers || step.writer.device.synchronous) return;
    is_counting_ = true;
    for (std::size_t before = 1; before != freed_.size();) {
      before = freed_.size();
      count(step);
    }
    is_counting_ = false;
    freed_.are_of_earlier_step();
  }

  /// What happens to units in a step, without any task.
  void count(StepBuilder& step) {
    const Training& training = step.training;
    const std::size_t layers = step.works.layers.size();
    for (int micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
      step.synced = micro_batch + 1 == training.micro_batches || !training.no_sync;
      before_forward(step);
      for (std::size_t layer = 0; layer < layers; ++layer) {
        before_layer(step, Pass::forward, layer);
        after_layer(step, Pass::forward, layer);
      }
      for (std::size_t layer = layers; layer-- > 0;) {
        before_layer(step, Pass::backward, layer);
        after_layer(step, Pass::backward, layer);
      }
    }
  }

  // Hooks.

  void pre_forward(StepBuilder& step, FlatStepUnit& unit) {
    call_hook(step, unit, "pre-forward", calls_.pre_forward);
    if (!unit.is_ahead) unshard(step, unit);
    unit.had_forward = true;
    wait(step, unit);
    const std::size_t next = at(unit.number) + 1;
    if (settings_.forward_prefetch && next < units_.size() && !units_[next].had_forward)
      unshard_ahead(step, units_[next]);
  }

  void post_forward(StepBuilder& step, FlatStepUnit& unit) {
    call_hook(step, unit, "post-forward", calls_.post_forward);
    post_forward_.push_back(&unit);
    reshard(step, unit, frees_after_forward() && !unit.is_root);
    unit.needs_backward = unit.has_backward;
  }

  void pre_backward(StepBuilder& step, FlatStepUnit& unit) {
    if (!unit.has_backward || std::exchange(unit.had_pre_backward, true)) return;
    call_hook(step, unit, "pre-backward", calls_.pre_backward);
    if (std::exchange(unit.needs_backward, false)) {
      if (!unit.is_ahead) unshard(step, unit);
      wait(step, unit);
    }
    if (settings_.backward_prefetch == BackwardPrefetch::pre) prefetch_before(step, unit);
    for (FlatStepUnit* frozen : std::exchange(frozen_, {})) post_backward(step, *frozen);
  }

  /// Its kernels have run. That of a unit without trained parameters is a hook on its inputs, on
  /// which the unit before it has one already.
  void end_backward(StepBuilder& step, FlatStepUnit& unit) {
    if (unit.used.empty()) {
      if (unit.had_pre_backward) frozen_.push_back(&unit);
      return;
    }
    if (!is_counting_) reductions_.put_together(step, unit);
    post_backward(step, unit);
  }

  void post_backward(StepBuilder& step, FlatStepUnit& unit) {
    call_hook(step, unit, "post-backward", calls_.post_backward);
    unit.had_post_backward = true;
    reshard(step, unit, step.synced || frees_after_forward());
    if (settings_.backward_prefetch == BackwardPrefetch::post) prefetch_before(step, unit);
    if (step.synced && !unit.used.empty() && !is_counting_) reductions_.reduce(step, unit);
  }

  /// The callback when the backward pass has ended: what had no post-backward hook is freed now.
  void end_backward(StepBuilder& step) {
    for (FlatStepUnit* frozen : std::exchange(frozen_, {})) post_backward(step, *frozen);
    if (step.synced && !is_counting_) reductions_.end_backward(step);
    for (FlatStepUnit& unit : units_) {
      if (unit.gathering != nobody) wait(step, unit);
      if (unit.is_whole && !unit.stays_whole && !unit.had_post_backward)
        reshard(step, unit, step.synced || frees_after_forward());
      unit.needs_backward = false;
    }
  }

  /// The gather of the unit before it in the forward pass.
  void prefetch_before(StepBuilder& step, FlatStepUnit& unit) {
    const auto found = std::ranges::find(post_forward_, &unit);
    if (found == post_forward_.end() || found == post_forward_.begin()) return;
    if ((*std::prev(found))->needs_backward) unshard_ahead(step, **std::prev(found));
  }

  // What they do to a unit.

  void unshard_ahead(StepBuilder& step, FlatStepUnit& unit) {
    if (std::exchange(unit.is_ahead, true)) return;
    unshard(step, unit);
  }

  void unshard(StepBuilder& step, FlatStepUnit& unit) {
    const bool gathers = !unit.is_whole && unit.gathering == nobody;
    if (gathers && !is_counting_) cast(step, unit);
    if (settings_.limit_all_gathers)
      if (const std::int32_t event = freed_.take(); event != nobody && waits_for_events(step))
        step.writer.host_waits(event);
    if (!gathers) return;
    unit.is_again = unit.had_forward;
    unit.gathering = is_counting_ ? 0 : gather(step, unit);
  }

  bool waits_for_events(const StepBuilder& step) const {
    return !is_counting_ && !step.writer.device.synchronous;
  }

  /// Kernels wait for the gather, and find whole parameters where it put them.
  void wait(StepBuilder& step, FlatStepUnit& unit) {
    if (unit.gathering == nobody) return;
    const std::int32_t gathered = std::exchange(unit.gathering, nobody);
    unit.is_whole = true;
    if (is_counting_) return;
    if (!step.writer.device.synchronous) step.writer.await(gathered, unit.number);
    for (std::size_t i = 0; i < unit.parameters.size(); ++i)
      step.memory.lies_in(unit.parameters[i],
                          {unit.whole[unit.is_again].buffer, program::nowhere, unit.begins[i],
                           step.memory.elements(unit.parameters[i])});
  }

  void reshard(StepBuilder& step, FlatStepUnit& unit, bool frees) {
    unit.is_ahead = false;
    if (!frees) return;
    if (unit.is_whole && !is_counting_)
      step.writer.goes(unit.whole[unit.is_again], StepStream::compute);
    unit.is_whole = false;
    if (settings_.limit_all_gathers) freed_.add(is_counting_ ? 0 : step.writer.last_kernel);
  }

  // Tasks.

  /// The rank's part in the type of whole parameters, beside the kernels.
  void cast(StepBuilder& step, const FlatStepUnit& unit) {
    if (unit.cast_part.empty()) return;
    StepWriter& writer = step.writer;
    writer.comes(unit.cast_part, StepStream::copy_in);
    const Bytes both = size_of(unit.kept) + size_of(unit.whole_type);
    const Work work = moving(Operation::cast, unit.part.count * both);
    writer.add(Operation::cast, stream_of_shards(step, StepStream::copy_in), writer.number_of(work),
               program::Cast{.to = unit.cast_part, .from = unit.part},
               origin_of(step, unit, "all-gather cast"));
    if (behind_ != nobody) writer.depend(behind_);
    cast_ = writer.newest();
  }

  std::int32_t gather(StepBuilder& step, const FlatStepUnit& unit) {
    StepWriter& writer = step.writer;
    const Slice& whole = unit.whole[unit.is_again];
    const bool casts = !unit.cast_part.empty();
    writer.comes(whole, StepStream::gather);
    StepWriter::Sending sending;
    sending.stream = stream_of_shards(step, StepStream::gather);
    sending.work.operation = Operation::all_gather;
    sending.work.message = Message::parameters;
    sending.work.payload = unit.part.count * size_of(unit.whole_type);
    sending.work.group = group_;
    sending.work.handed_over = true;
    sending.what.what = program::Collectives::all_gather;
    sending.what.from = casts ? unit.cast_part : unit.part;
    sending.what.to = whole;
    sending.of.group = unit.number;
    sending.input = casts ? cast_ : behind_;
    if (casts) sending.behind = behind_;
    sending.ready = sending.input;
    const std::int32_t gathered = writer.send(sending);
    if (casts) writer.goes(unit.cast_part, StepStream::gather);
    if (writer.device.synchronous) writer.await(gathered, unit.number);
    return gathered;
  }

  void call_hook(StepBuilder& step, const FlatStepUnit& unit, std::string_view label,
                 const HookCalls& calls) {
    if (is_counting_) return;
    Work work;
    work.operation = Operation::unit_hook;
    work.launches = calls.of(static_cast<std::int32_t>(unit.parameters.size()));
    step.writer.host_task(Operation::unit_hook, work,
                          program::Call{.what = program::Call::What::unit, .index = unit.number},
                          origin_of(step, unit, label));
  }

  FsdpVariantSettings settings_;
  CallsOfHooks calls_;
  std::int32_t group_ = 0;           ///< as in Work: the ranks that share a parameter, or all
  std::vector<FlatStepUnit> units_;  ///< the root's first, if it has parameters; as they run
  /// [layer] units: but the root, that begin or end there; whose post-backward hook comes there.
  std::vector<std::vector<FlatStepUnit*>> first_here_, last_here_, ends_here_;
  std::vector<FlatStepUnit*> post_forward_;  ///< in the order in which their forward passes ended
  std::vector<FlatStepUnit*> frozen_;        ///< whose post-backward hook is still to come
  FreedEvents freed_;
  FlatReductions reductions_{1, 0};
  std::int32_t behind_ = nobody;  ///< what kernels had done when the forward pass began
  std::int32_t cast_ = nobody;    ///< the newest cast of a part
  bool is_counting_ = false;
};

}  // namespace

std::unique_ptr<StrategyTasks> make_fsdp1() {
  return std::make_unique<Fsdp1>();
}

}  // namespace ddpsim
