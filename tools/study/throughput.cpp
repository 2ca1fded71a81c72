#include "tools/study/throughput.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

/// Adds a kernel's product. False: the device has no peak for its type.
bool add(Flops& executed, Flops& model, const Kernel& kernel, const Device& device) {
  if (!kernel.gemm) return true;
  const double peak = device.peak_of(kernel.type).flops_per_second;
  if (peak <= 0) return false;
  const auto add_to = [&](Flops& sum, double flops) {
    sum.flops += flops;
    sum.seconds_at_peak += flops / peak;
  };
  add_to(executed, kernel.gemm->flops());
  add_to(model, (1 - kernel.recomputed) * kernel.gemm->flops());
  return true;
}

}  // namespace

std::optional<StepSamples> samples_of(const Scenario& scenario, const Training& training) {
  if (scenario.batch == 0) return std::nullopt;
  const int ranks = scenario.cluster.ranks() - (training.join ? training.join->joined_ranks : 0);
  StepSamples step;
  step.samples = static_cast<double>(scenario.batch) * training.micro_batches * ranks;
  if (scenario.sequence > 0) step.tokens = step.samples * scenario.sequence;
  return step;
}

std::optional<StepFlops> step_flops(const Workload& workload, const Device& device,
                                    int micro_batches) {
  if (!has_shapes(workload)) return std::nullopt;
  Flops executed, model;
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass)
        if (!add(executed, model, kernel, device)) return std::nullopt;
  for (Flops* sum : {&executed, &model}) {
    sum->flops *= micro_batches;
    sum->seconds_at_peak *= micro_batches;
  }
  return StepFlops{executed, workload.tells_recomputed ? std::optional(model) : std::nullopt};
}

}  // namespace ddpsim
