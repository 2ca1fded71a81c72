#include "model/parallel/policy/zero_refusals.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// DeepSpeed's parts of stages 1 and 2 are cut from one piece, and parts of a cast from masters of
/// one type.
std::optional<Refusal> types_refusal(const WorkloadGradients& workload, std::span<const DType> kept,
                                     const Training& training) {
  const bool is_one_piece =
      training.zero()->variant == ZeroVariant::deepspeed && training.strategy != Strategy::zero3;
  if (kept.empty() || !(is_one_piece || training.casts_parameters())) return std::nullopt;
  const auto other = std::ranges::find_if(kept, [&](DType type) { return type != kept.front(); });
  if (other == kept.end()) return std::nullopt;
  return Refusal{
      "training.strategy",
      fmt::format("{} is {} and {} is {}: {} is modelled where all parameters are of one "
                  "type",
                  workload.names[static_cast<std::size_t>(other - kept.begin())].substr(0, 200),
                  name_of(*other), workload.names.front().substr(0, 200), name_of(kept.front()),
                  name_of(training.strategy)),
      {}};
}

std::optional<Refusal> settings_refusal(const Training& training) {
  const ZeroSettings& settings = *training.zero();
  if (settings.overlap_param_gather && !settings.overlap_grad_reduce)
    return Refusal{"training.zero1.overlap_param_gather",
                   "overlap_param_gather needs overlap_grad_reduce: true beside it, as Megatron-LM "
                   "has it",
                   {}};
  if (training.no_sync && training.micro_batches > 1 &&
      reduces_every_micro_batch(training.strategy))
    return Refusal{"training.no_sync",
                   fmt::format("{} reduces every micro-batch's gradients, as DeepSpeed does: take "
                               "no_sync out",
                               name_of(training.strategy)),
                   {}};
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> zero_refusal(const WorkloadGradients& workload, std::span<const DType> kept,
                                    const Training& training, const StepWriter::Device& device) {
  if (training.zero() == nullptr || !training.has_policy()) return std::nullopt;
  const std::string_view name = name_of(training.strategy);
  if (device.through_host)
    return Refusal{"cluster.through_host",
                   fmt::format("{} is modelled where collectives run on the devices, not on the "
                               "hosts: take device.through_host out",
                               name),
                   {}};
  for (std::size_t i = 0; i < workload.parameters(); ++i)
    if (workload.gradients[i].sparse)
      return Refusal{"training.strategy",
                     fmt::format("the gradient of {} is sparse, and {} takes dense ones: take the "
                                 "parameter's sparse: true out",
                                 workload.names[i].substr(0, 200), name),
                     {}};
  if (auto refusal = types_refusal(workload, kept, training)) return refusal;
  if (!training.hooks.empty())
    return Refusal{"training.hooks",
                   fmt::format("hooks of your own are not modelled under {}: "
                               "take training.hooks out",
                               name),
                   {}};
  if (training.join)
    return Refusal{
        "training.join", fmt::format("{} has no join(): take training.join out", name), {}};
  return settings_refusal(training);
}

void check_zero(const StepBuilder& step) {
  check(zero_refusal(step.works, step.works.kept_as, step.training, step.writer.device));
}

}  // namespace ddpsim
