#include "model/parallel/memory/peak_memory.hpp"

#include "model/parallel/memory/held_memory.hpp"
#include "model/parallel/passes_of.hpp"

namespace ddpsim {
namespace {

using program::Origin;
using program::Pass;

/// Does a task belong to a pass of the network or to the optimizer's step, and to no comm hook?
bool is_of_pass(const Origin& origin) {
  return origin.pass != Pass::none && origin.purpose != program::Purpose::hook;
}

/// Where in the step the host is when it issues a task.
void find_moment(const program::Job& job, StepMemory& memory) {
  const auto& tasks = job.programs[memory.program].tasks;
  const auto origin_of = [&](std::size_t task) -> const Origin& {
    return job.deed_of(tasks[task]).origin;
  };
  std::size_t next = memory.before, last = memory.before;
  while (next < tasks.size() && !is_of_pass(origin_of(next))) ++next;
  if (next > memory.before)
    while (last > 0 && !is_of_pass(origin_of(last - 1))) --last;
  // Between two tasks of one pass it is that pass, and the layer is that of the one before.
  const Pass coming = next < tasks.size() ? origin_of(next).pass : Pass::none;
  const Pass gone = next > memory.before && last > 0 ? origin_of(last - 1).pass : coming;
  if (next == memory.before)
    memory.layer = origin_of(next).layer;
  else if (last > 0 && coming == gone)
    memory.layer = origin_of(last - 1).layer;
  if (gone == Pass::optimizer)
    memory.at = PeakMoment::optimizer;
  else if (gone == Pass::forward)
    memory.at = PeakMoment::forward;
  else if (gone == Pass::backward)
    memory.at = coming == Pass::backward ? PeakMoment::backward : PeakMoment::reduction;
}

}  // namespace

StepMemory step_memory(const Workload& workload, Optimizer optimizer, const Training& training,
                       const program::Job& job) {
  StepMemory memory;
  const program::Job whole = program::with_memory(job, workload, optimizer, training);
  for (std::size_t p = 0; p < whole.programs.size(); ++p) {
    const program::MemoryAlong along = memory_along(whole, whole.programs[p]);
    const program::MemoryPeak peak = peak_of(along);
    if (p > 0 && peak.sum() <= memory.peak) continue;
    memory.most = peak.most;
    memory.at_peak = peak.at_peak;
    memory.peak = peak.sum();
    memory.reserved = reserved_for(along);
    memory.program = p;
    memory.before = peak.before;
  }
  memory.knows_activations = has_memory(passes_of(workload, training));
  memory.knows_optimizer = optimizer != Optimizer::none || !workload.optimizer;
  find_moment(whole, memory);
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
