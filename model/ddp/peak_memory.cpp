#include "model/ddp/peak_memory.hpp"

#include <algorithm>
#include <vector>

#include "model/base/index.hpp"
#include "model/ddp/hooked_buckets.hpp"

namespace ddpsim {
namespace {

/// The bytes of a parameter's gradient as backward makes it; none for an unused parameter.
Bytes gradient_size(const Parameter& parameter) {
  if (parameter.unused) return {};
  return parameter.sparse ? parameter.sparse_values() + parameter.sparse_indices()
                          : parameter.size();
}

/// Is the parameter's gradient a view of its bucket? Gradients whose all-reduce is delayed are
/// views too.
bool is_view(const Workload& workload, std::size_t index, const Training& training) {
  if (training.strategy != Strategy::bucketed || workload.parameters[index].sparse) return false;
  return training.gradient_as_bucket_view ||
         (training.delayed && training.delayed->contains(static_cast<std::int32_t>(index)));
}

CommMemory hook_memory(const Workload& workload, const Training& training,
                       const Schedule& schedule) {
  CommMemory most;
  if (schedule.hook_state.empty()) return most;
  for (const Bucket& bucket : schedule.buckets) {
    if (bucket.gradients.empty()) continue;  // not the hook's
    const DType type =
        workload.parameters[static_cast<std::size_t>(bucket.parameters.front())].dtype;
    const CommMemory memory =
        comm_memory(training.comm_hook, {bucket.gradients, type}, schedule.ranks);
    most.kept += memory.kept;
    most.transient = std::max(most.transient, memory.transient);
  }
  return most;
}

/// The optimizer's state of all parameters. Under ZeRO's hooks: of the parameters that a rank owns,
/// on the rank that owns most. None where nothing says what updates parameters.
std::optional<Bytes> state_of(const Workload& workload, Optimizer optimizer,
                              const Training& training, const Schedule& schedule) {
  if (optimizer == Optimizer::none && workload.optimizer) return std::nullopt;
  const bool zero = training.strategy == Strategy::bucketed &&
                    is_zero_step(training.comm_hook.kind) && !schedule.buckets.empty();
  if (!zero) return optimizer_state(optimizer, workload);
  std::vector<Bytes> of_rank(static_cast<std::size_t>(schedule.ranks));
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b) {
    Bytes& owned = of_rank[b % of_rank.size()];
    for (const std::int32_t p : schedule.buckets[b].parameters)
      owned += optimizer_state(optimizer, workload, static_cast<std::size_t>(p));
  }
  return *std::max_element(of_rank.begin(), of_rank.end());
}

/// The highest of several moments, which differ in their parts alone.
class Peak {
 public:
  void reach(const PeakParts& parts, PeakMoment at) {
    if (parts.sum() <= highest_.sum()) return;
    highest_ = parts;
    at_ = at;
  }
  /// `stays`: what is there besides, throughout the step.
  void write_to(StepMemory& memory, Bytes stays) const {
    memory.peak = stays + highest_.sum();
    memory.at_peak = highest_;
    memory.at = at_;
  }

 private:
  PeakParts highest_;
  PeakMoment at_ = PeakMoment::forward;
};

struct Gradients {
  Bytes all;
  bool there_before;  ///< when forward begins
};

/// A pass of a module over what is there: the most it is known to hold, or what is kept and what it
/// is taken to hold beside that.
void reach_in(std::optional<Bytes> most, Bytes kept, Bytes working, PeakParts there, PeakMoment at,
              Peak& peak) {
  there.activations = most ? std::min(kept, *most) : kept;
  there.working = most ? *most - there.activations : working;
  peak.reach(there, at);
}

/// The passes of one micro-batch: activations pile up and go, gradients come. `forward`: the
/// buckets and what the comm hook holds meanwhile; `backward`: likewise.
void walk_passes(const Workload& workload, PeakParts forward, PeakParts backward,
                 const Gradients& gradients, Peak& peak) {
  forward.gradients = gradients.there_before ? gradients.all : Bytes{};
  Bytes kept;
  for (const Layer& layer : workload.layers) {
    for (const ModuleMemory& module : layer.memory) {
      kept += module.kept;
      reach_in(module.forward_peak, kept, module.forward_working, forward, PeakMoment::forward,
               peak);
    }
  }
  Bytes made;
  for (auto layer = workload.layers.rbegin(); layer != workload.layers.rend(); ++layer) {
    for (auto module = layer->memory.rbegin(); module != layer->memory.rend(); ++module) {
      made += module->gradients;
      // A gradient that is added to an earlier one takes memory beside it for a moment.
      backward.gradients = gradients.there_before ? gradients.all + module->gradients
                                                  : std::min(made, gradients.all);
      reach_in(module->backward_peak, kept, module->backward_working, backward,
               PeakMoment::backward, peak);
      kept = kept - module->kept;
    }
  }
  backward.gradients = gradients.all;
  peak.reach(backward, PeakMoment::backward);
}

}  // namespace

StepMemory step_memory(const Workload& workload, Optimizer optimizer, const Training& training,
                       const Schedule& schedule) {
  StepMemory memory;
  for (std::size_t p = 0; p < workload.parameters.size(); ++p) {
    memory.parameters += workload.parameters[p].size();
    if (!is_view(workload, p, training)) memory.gradients += gradient_size(workload.parameters[p]);
  }
  for (const BufferGroup& group : workload.buffers) memory.module_buffers += group.size;
  memory.frozen = workload.frozen;
  memory.inputs = workload.inputs;
  memory.workspaces = workload.workspaces;
  for (const Bucket& bucket : schedule.buckets)
    if (!bucket.in_place && !bucket.sparse) memory.buckets += bucket.size;
  memory.optimizer = state_of(workload, optimizer, training, schedule);
  const CommMemory hook = hook_memory(workload, training, schedule);
  memory.comm_hook = hook.kept + hook.transient;

  const bool bucketed = training.strategy == Strategy::bucketed;
  const Bytes stays = memory.parameters + memory.module_buffers + memory.frozen + memory.inputs +
                      memory.workspaces + memory.optimizer.value_or(Bytes{});
  PeakParts kept;  // beside `stays`, throughout the step
  kept.buckets = bucketed ? memory.buckets : Bytes{};
  kept.comm_hook = hook.kept;
  PeakParts with_hook = kept;
  with_hook.comm_hook = memory.comm_hook;
  const bool kept_over = training.micro_batches > 1 ||
                         (bucketed && training.gradient_as_bucket_view) ||
                         training.pytorch == PyTorch::v1_13;
  Peak peak;
  if (has_memory(workload)) {
    memory.activations = Bytes{};
    for (const Layer& layer : workload.layers)
      for (const ModuleMemory& module : layer.memory) *memory.activations += module.kept;
    walk_passes(workload, kept, with_hook, {memory.gradients, kept_over}, peak);
  }
  PeakParts reduction = with_hook;
  reduction.gradients = memory.gradients;
  reduction.buckets = memory.buckets;
  peak.reach(reduction, PeakMoment::reduction);
  PeakParts update = kept;
  update.gradients = memory.gradients;
  update.working = optimizer_working(optimizer, workload);
  peak.reach(update, PeakMoment::optimizer);
  peak.write_to(memory, stays);
  return memory;
}

Bytes cublas_workspaces(int compute_capability) {
  constexpr int hopper = 90;
  constexpr Bytes since_hopper{32 << 20}, before{8320 << 10};
  if (compute_capability <= 0) return {};
  return 2 * (compute_capability >= hopper ? since_hopper : before);
}

bool fits(Bytes peak, Bytes device) {
  const double needed = static_cast<double>(peak.count) * (1 + memory_margin) +
                        static_cast<double>(context_memory.count);
  return needed <= static_cast<double>(device.count);
}

}  // namespace ddpsim
