#include "model/parallel/policy/fsdp_refusals.hpp"

#include <fmt/format.h>

namespace ddpsim {
namespace {

void check_offload(const StepBuilder& step) {
  const auto check_not = [](bool wrong, std::string reason) {
    if (wrong) check(Refusal{"training.offload_policy", std::move(reason), {}});
  };
  check_not(step.writer.device.synchronous,
            "a CPU's memory is the host's, and there is nothing to offload: take it out");
  check_not(step.training.micro_batches > 1 && !step.training.no_sync,
            "gradients of several micro-batches are added up on the host, which is not modelled: "
            "write no_sync: true");
  check_not(step.works.clips_gradients,
            "the norm of gradients that are on the host is not modelled: take "
            "workload.clip_gradients out");
}

}  // namespace

std::optional<Refusal> mesh_refusal(const Training& training, int ranks) {
  const int replicas = training.replicate;
  if (ranks % replicas != 0)
    return Refusal{"training.replicate",
                   fmt::format("{} ranks cannot be {} replicas of as many ranks each: expected a "
                               "divisor of {}",
                               ranks, replicas, ranks),
                   {}};
  if (replicas > 1 && replicas == ranks)
    return Refusal{"training.replicate",
                   fmt::format("{} replicas on {} ranks leave nothing to shard: take fewer, or "
                               "strategy bucketed",
                               replicas, ranks),
                   {}};
  const int shards = ranks / replicas;
  const auto neighbours = [&](const std::optional<Reshard>& reshard,
                              const char* key) -> std::optional<Refusal> {
    if (!reshard || !reshard->frees || reshard->ranks == 0 || shards % reshard->ranks == 0)
      return std::nullopt;
    return Refusal{key,
                   fmt::format("{} ranks that share parameters cannot be groups of {}: expected a "
                               "divisor of {}",
                               shards, reshard->ranks, shards),
                   {}};
  };
  if (auto refusal = neighbours(training.reshard_after_forward, "training.reshard_after_forward"))
    return refusal;
  for (const UnitSettings& each : training.unit_settings)
    if (auto refusal = neighbours(each.reshard_after_forward, "training.units")) return refusal;
  return std::nullopt;
}

void check_fully_shard(const StepBuilder& step) {
  const auto check_not = [](bool wrong, std::string reason) {
    if (wrong) check(Refusal{"training.strategy", std::move(reason), {}});
  };
  check_not(step.writer.device.through_host,
            "fsdp is modelled where collectives run on the devices, not on the hosts: take "
            "device.through_host out");
  for (std::size_t i = 0; i < step.works.parameters(); ++i)
    check_not(step.works.gradients[i].sparse,
              fmt::format("the gradient of {} is sparse, and fully_shard takes dense ones: take "
                          "the parameter's sparse: true out",
                          step.works.names[i].substr(0, 200)));
  check(mesh_refusal(step.training, step.writer.device.ranks));
  if (step.training.offload_policy) check_offload(step);
  for (const UserHook& hook : step.training.hooks)
    if (!hook.groups.empty())
      check(Refusal{"training.hooks",
                    fmt::format("hook {} is on gradients, and under fully_shard no such hook ever "
                                "fires: take it out (chunks, on a layer's output, do)",
                                label(hook)),
                    {}});
  check_not(step.training.join.has_value(), "fully_shard has no join(): take training.join out");
}

}  // namespace ddpsim
