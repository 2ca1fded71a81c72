#include "tools/study/throughput.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

/// Adds a kernel's product. False: the device has no peak for its type.
bool add(ModelFlops& sum, const Kernel& kernel, const Device& device) {
  if (!kernel.gemm) return true;
  const double peak = device.peak_of(kernel.type).flops_per_second;
  if (peak <= 0) return false;
  sum.flops += kernel.gemm->flops();
  sum.seconds_at_peak += kernel.gemm->flops() / peak;
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

std::optional<ModelFlops> model_flops(const Workload& workload, const Device& device,
                                      int micro_batches) {
  if (!has_shapes(workload)) return std::nullopt;
  ModelFlops sum;
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass)
        if (!add(sum, kernel, device)) return std::nullopt;
  sum.flops *= micro_batches;
  sum.seconds_at_peak *= micro_batches;
  return sum;
}

}  // namespace ddpsim
