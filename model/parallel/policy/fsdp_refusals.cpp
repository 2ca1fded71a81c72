#include "model/parallel/policy/fsdp_refusals.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// ", such as 2, 4 or 8": divisors that leave something to shard; "" if none does.
std::string divisors_text(int ranks) {
  constexpr std::size_t most = 6;
  std::vector<std::string> divisors;
  for (int each = 2; each <= ranks / 2 && divisors.size() < most; ++each)
    if (ranks % each == 0) divisors.push_back(std::to_string(each));
  if (divisors.empty()) return "";
  const std::string last = divisors.back();
  divisors.pop_back();
  return fmt::format(", such as {}{}{}", fmt::join(divisors, ", "), divisors.empty() ? "" : " or ",
                     last);
}

/// Whether so many ranks divide into the replicas, and these into the groups of neighbours.
std::optional<Refusal> mesh_refusal(const Training& training, int ranks) {
  const int replicas = training.replicate;
  if (ranks % replicas != 0)
    return Refusal{"training.replicate",
                   fmt::format("{} ranks cannot be {} replicas of as many ranks each: expected a "
                               "divisor of {}{}",
                               ranks, replicas, ranks, divisors_text(ranks)),
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

/// What FullyShardedDataParallel has no word for, or is told twice.
std::optional<Refusal> fsdp1_refusal(const Training& training) {
  const ShardingStrategy strategy = training.fsdp.sharding_strategy;
  if (is_hybrid(strategy) && training.replicate == 1)
    return Refusal{"training.fsdp.sharding_strategy",
                   fmt::format("{} shards within each of several replicas: write how many as "
                               "training.replicate",
                               name_of(strategy)),
                   {}};
  if (!is_hybrid(strategy) && training.replicate > 1)
    return Refusal{
        "training.replicate",
        fmt::format("{} has no replicas: write sharding_strategy: {} in training.fsdp, "
                    "or take this out",
                    name_of(strategy),
                    name_of(frees_after_forward(strategy) ? ShardingStrategy::hybrid_shard
                                                          : ShardingStrategy::hybrid_shard_zero2)),
        {}};
  if (training.offload_policy)
    return Refusal{"training.offload_policy",
                   "CPU offload is modelled for variant fully_shard: take this out, or write "
                   "variant: fully_shard in training.fsdp",
                   {}};
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> fsdp_refusal(const WorkloadGradients& workload, const Training& training,
                                    const StepWriter::Device& device) {
  const auto refused = [](std::string key, std::string reason) {
    return Refusal{std::move(key), std::move(reason), {}};
  };
  const bool is_first = training.fsdp.variant == FsdpVariant::fsdp1;
  const std::string_view name = is_first ? "FullyShardedDataParallel" : "fully_shard";
  if (device.through_host)
    return refused("cluster.through_host",
                   "fsdp is modelled where collectives run on the devices, not on the hosts: take "
                   "device.through_host out");
  for (std::size_t i = 0; i < workload.parameters(); ++i)
    if (workload.gradients[i].sparse)
      return refused("training.strategy",
                     fmt::format("the gradient of {} is sparse, and {} takes dense ones: take the "
                                 "parameter's sparse: true out",
                                 workload.names[i].substr(0, 200), name));
  if (is_first)
    if (auto refusal = fsdp1_refusal(training)) return refusal;
  if (auto refusal = mesh_refusal(training, device.ranks)) return refusal;
  for (const UserHook& hook : training.hooks)
    if (!hook.groups.empty())
      return refused("training.hooks",
                     fmt::format("hook {} is on gradients, and under {} no such hook ever fires: "
                                 "take it out (chunks, on a layer's output, do)",
                                 label(hook), name));
  if (training.join)
    return refused("training.join", fmt::format("{} has no join(): take training.join out", name));
  return std::nullopt;
}

void check_fsdp(const StepBuilder& step) {
  check(fsdp_refusal(step.works, step.training, step.writer.device));
  if (step.training.offload_policy) check_offload(step);
}

}  // namespace ddpsim
