#include "model/parallel/policy/refusals.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "model/parallel/policy/bucket_plan.hpp"

namespace ddpsim {
namespace {

using Refused = std::optional<Refusal>;

Refused refused(std::string key, std::string reason, std::vector<std::size_t> items = {}) {
  return Refusal{std::move(key), std::move(reason), std::move(items)};
}

/// A name as an error shows it.
std::string shown(const WorkloadGradients& workload, std::int32_t parameter) {
  return workload.names[at(parameter)].substr(0, 200);
}

bool is_of(const WorkloadGradients& workload, std::int32_t parameter) {
  return parameter >= 0 && at(parameter) < workload.parameters();
}

std::string unknown_parameter(const WorkloadGradients& workload, std::int32_t parameter) {
  return fmt::format("there is no parameter {}: they are counted from 0 to {}", parameter,
                     static_cast<std::int64_t>(workload.parameters()) - 1);
}

bool is_delayed(const Training& training, std::size_t parameter) {
  return training.delayed && training.delayed->contains(static_cast<std::int32_t>(parameter));
}

// How buckets are made.

Refused exclusive_refusal(const WorkloadGradients&, const Training& training) {
  const auto given = [&](std::string_view key) {
    const auto keys = exclusive_keys();
    const auto found = std::find_if(keys.begin(), keys.end(),
                                    [&](const ExclusiveKey& each) { return each.key == key; });
    return found->is_set(training);
  };
  for (const ExclusiveKey& each : exclusive_keys())
    if (each.is_set(training) && std::any_of(each.others.begin(), each.others.end(), given))
      return refused(fmt::format("training.{}", each.key), std::string(each.reason));
  return std::nullopt;
}

Refused groups_refusal(const WorkloadGradients& workload, const Training& training) {
  if (training.parameter_groups <= 0 || at(training.parameter_groups) <= workload.parameters())
    return std::nullopt;
  return refused("training.parameter_groups",
                 fmt::format("{} parameter groups of {} parameters: some would be empty",
                             training.parameter_groups, workload.parameters()));
}

/// Each cap has to close, or hold, a bucket.
Refused caps_refusal(const WorkloadGradients& workload, const Training& training) {
  if (training.bucket_caps.empty()) return std::nullopt;
  const std::size_t buckets = buckets_by_caps(workload, training);
  if (buckets >= training.bucket_caps.size()) return std::nullopt;
  return refused(
      "training.bucket_caps",
      fmt::format("this cap closes no bucket: all gradients are in the {} before it", buckets),
      {buckets});
}

Refused of_buckets(std::string reason, std::vector<std::size_t> items = {}) {
  return refused("training.buckets", std::move(reason), std::move(items));
}

/// Explicit buckets hold every parameter once.
Refused buckets_refusal(const WorkloadGradients& workload, const Training& training) {
  if (training.buckets.empty()) return std::nullopt;
  std::vector<bool> seen(workload.parameters(), false);
  for (std::size_t b = 0; b < training.buckets.size(); ++b) {
    const std::vector<int>& bucket = training.buckets[b];
    if (bucket.empty()) return of_buckets("expected at least one parameter name in a bucket", {b});
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      if (!is_of(workload, bucket[i]))
        return of_buckets(unknown_parameter(workload, bucket[i]), {b, i});
      if (seen[at(bucket[i])])
        return of_buckets(
            fmt::format("parameter \"{}\" is in a bucket already", shown(workload, bucket[i])),
            {b, i});
      seen[at(bucket[i])] = true;
    }
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return std::nullopt;
  return of_buckets(fmt::format("parameter \"{}\" is in no bucket ({} of {} are missing)",
                                shown(workload, static_cast<std::int32_t>(missing - seen.begin())),
                                std::count(seen.begin(), seen.end(), false), seen.size()));
}

/// An explicit bucket has one type.
Refused types_refusal(const WorkloadGradients& workload, const Training& training) {
  for (std::size_t b = 0; b < training.buckets.size(); ++b) {
    const std::vector<int>& bucket = training.buckets[b];
    const DType first = workload.gradients[at(bucket.front())].dtype;
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const DType here = workload.gradients[at(bucket[i])].dtype;
      if (stored_type(here) != stored_type(first))
        return of_buckets(fmt::format("\"{}\" is {}, but its bucket is {}: a bucket has one type",
                                      shown(workload, bucket[i]), name_of(here), name_of(first)),
                          {b, i});
    }
  }
  return std::nullopt;
}

// Parameters whose all-reduce is delayed.

Refused delayed_mode_refusal(const WorkloadGradients&, const Training& training) {
  if (!training.delayed) return std::nullopt;
  const auto why = [](std::string reason) {
    return refused("training.delay_all_reduce", std::move(reason));
  };
  if (training.micro_batches > 1)
    return why("its hook divides the buffer with every backward: set micro_batches: 1");
  if (training.join) return why("a rank without inputs would not send it: take join out");
  if (updates_parameters(training.comm_hook.kind))
    return why(fmt::format("{} updates parameters in DDP's buckets only: take comm_hook out",
                           name_of(training.comm_hook.kind)));
  if (!training.buckets.empty() || training.parameter_groups > 0)
    return why("it goes with the buckets DDP makes: take buckets and parameter_groups out");
  return std::nullopt;
}

/// The hook that sends delayed gradients must not come before them.
Refused delayed_order_refusal(const WorkloadGradients& workload, const Training& training) {
  if (!training.delayed) return std::nullopt;
  const std::string key = "training.delay_all_reduce";
  const DelayedAllReduce& delayed = *training.delayed;
  if (delayed.parameters.empty())
    return refused(key, "expected the name of one parameter at least");
  if (!is_of(workload, delayed.hook))
    return refused(key + ".hook", unknown_parameter(workload, delayed.hook));
  const auto unused = [&](std::int32_t index) { return workload.gradients[at(index)].unused; };
  const auto sends = std::find(workload.arrival.begin(), workload.arrival.end(), delayed.hook);
  for (const std::int32_t index : delayed.parameters) {
    if (!is_of(workload, index))
      return refused(key + ".parameters", unknown_parameter(workload, index));
    if (unused(index) || unused(delayed.hook) ||
        std::find(workload.arrival.begin(), sends, index) == sends)
      return refused(key + ".hook",
                     fmt::format("{} gets its gradient after this one, or never, and would be sent "
                                 "before: name a parameter that comes later in backward",
                                 shown(workload, index)));
  }
  return std::nullopt;
}

// Settings that cannot be combined with all-reduces that make means.

Refused average_refusal(const WorkloadGradients&, const Training& training) {
  if (training.average == Average::divide) return std::nullopt;
  const auto why = [](std::string_view key) {
    return refused("training.average",
                   fmt::format("{} divides itself: take it out, or average: all_reduce", key));
  };
  if (training.comm_hook) return why("comm_hook");
  if (training.join) return why("join");
  if (training.delayed) return why("delay_all_reduce");
  return std::nullopt;
}

/// Settings of DistributedDataParallel that a wrapper of one's own does not have.
Refused own_buckets_refusal(const WorkloadGradients& workload, const Training& training) {
  if (!training.own_buckets()) return std::nullopt;
  const std::string_view own = training.flattened_buckets ? "flattened_buckets" : "copied_buckets";
  const auto why = [own](std::string_view key) {
    return refused(fmt::format("training.{}", own),
                   fmt::format("{} is DistributedDataParallel's: take it out, or {}", key, own));
  };
  if (training.flattened_buckets && training.copied_buckets)
    return refused("training.copied_buckets",
                   "buckets are flattened or copied: take this out, or flattened_buckets");
  if (training.comm_hook) return why("comm_hook");
  if (training.join) return why("join");
  if (training.delayed) return why("delay_all_reduce");
  if (training.gradient_as_bucket_view) return why("gradient_as_bucket_view");
  if (training.batched_grad_copy) return why("batched_grad_copy");
  if (training.find_unused_parameters) return why("find_unused_parameters");
  if (training.static_graph) return why("static_graph");
  for (const GradientInfo& gradient : workload.gradients)
    if (gradient.sparse) return why("reducing a sparse gradient");
  return std::nullopt;
}

// What DDP and comm hooks cannot do with parameters.

/// Unused parameters: DDP waits for their gradients for ever unless it looks for unused parameters
/// or the graph is static (rule R35).
Refused unused_refusal(const WorkloadGradients& workload, const Training& training) {
  if (training.find_unused_parameters || training.static_graph) return std::nullopt;
  for (std::size_t i = 0; i < workload.parameters(); ++i)
    if (workload.gradients[i].unused && !is_delayed(training, i))
      return refused("training",
                     fmt::format("no gradient reaches {}, so DistributedDataParallel's next "
                                 "forward would fail: set find_unused_parameters: true or "
                                 "static_graph: true",
                                 shown(workload, static_cast<std::int32_t>(i))));
  return std::nullopt;
}

Refused sparse_refusal(const WorkloadGradients& workload, const Training& training) {
  if (!training.comm_hook) return std::nullopt;
  for (std::size_t i = 0; i < workload.parameters(); ++i)
    if (workload.gradients[i].sparse && !is_delayed(training, i))
      return refused("training.comm_hook",
                     fmt::format("comm hooks take dense gradients, and that of {} is sparse: take "
                                 "comm_hook out, or the parameter's sparse: true",
                                 shown(workload, static_cast<std::int32_t>(i))));
  return std::nullopt;
}

/// Comm hooks that compute do so with real numbers of 16 or 32 bits.
Refused format_refusal(const WorkloadGradients& workload, const Training& training) {
  const CommHookKind kind = training.comm_hook.kind;
  const bool computes = !training.comm_hook.wrappers.empty() ||
                        (kind != CommHookKind::none && kind != CommHookKind::allreduce &&
                         kind != CommHookKind::noop && kind != CommHookKind::post_local_sgd);
  if (!computes) return std::nullopt;
  for (std::size_t i = 0; i < workload.parameters(); ++i) {
    const DType type = workload.gradients[i].dtype;
    if (std::find(all_dtypes.begin(), all_dtypes.end(), type) == all_dtypes.end())
      return refused("training.comm_hook",
                     fmt::format("comm hooks are modelled for gradients of fp32, bf16 and fp16, "
                                 "and that of {} is {}: take comm_hook out",
                                 shown(workload, static_cast<std::int32_t>(i)), name_of(type)));
  }
  return std::nullopt;
}

/// Why PyTorch's ZeRO hook would fail or never begin in this training.
Refused zero_step_refusal(const WorkloadGradients& workload, const Training& training,
                          const StepWriter::Device& device) {
  if (!is_zero_step(training.comm_hook.kind)) return std::nullopt;
  const auto why = [](std::string reason) {
    return refused("training.comm_hook", std::move(reason));
  };
  for (const DType type : training.comm_hook.wrappers)
    if (const std::string reason = wrapper_refusal(training.comm_hook.kind, type); !reason.empty())
      return why(reason);
  if (never_rebuilt(training.find_unused_parameters, training.static_graph))
    return why(
        "ZeRO's hooks begin once DDP has rebuilt its buckets, which it never does with "
        "find_unused_parameters alone: set static_graph: true, or take find_unused_parameters out");
  if (training.skip_all_reduce_unused_params)
    return why("ZeRO's hooks count on every bucket: take skip_all_reduce_unused_params out");
  if (training.join) return why("ZeRO's hooks with uneven inputs are not modelled: take join out");
  for (std::size_t i = 0; i < workload.parameters(); ++i)
    if (stored_type(workload.gradients[i].dtype) != stored_type(workload.gradients[0].dtype))
      return why(
          fmt::format("ZeRO's hooks take parameters of one type, and {} is not of the first one's: "
                      "take comm_hook out",
                      shown(workload, static_cast<std::int32_t>(i))));
  if (device.collectives_at_once > 1 || device.through_host)
    return why(
        "ZeRO's hooks are for NCCL, whose collectives run one at a time on the devices: take "
        "cluster.through_host out, and write cluster.collectives_at_once: 1");
  return std::nullopt;
}

}  // namespace

void check(const Refused& refusal) {
  if (refusal) throw std::invalid_argument(fmt::format("{}: {}", refusal->key, refusal->reason));
}

Refused bucket_refusal(const WorkloadGradients& workload, const Training& training) {
  for (const auto rule : {delayed_mode_refusal, delayed_order_refusal, groups_refusal,
                          buckets_refusal, average_refusal, own_buckets_refusal})
    if (Refused why = rule(workload, training)) return why;
  return std::nullopt;
}

Refused slip_refusal(const WorkloadGradients& workload, const Training& training) {
  for (const auto rule : {exclusive_refusal, caps_refusal, types_refusal})
    if (Refused why = rule(workload, training)) return why;
  return std::nullopt;
}

Refused step_refusal(const WorkloadGradients& workload, const Training& training,
                     const StepWriter::Device& device) {
  if (Refused why = unused_refusal(workload, training)) return why;
  if (Refused why = sparse_refusal(workload, training)) return why;
  if (Refused why = format_refusal(workload, training)) return why;
  return zero_step_refusal(workload, training, device);
}

Refused subgroup_refusal(const Training& training, const RanksPerNode& ranks) {
  const CommHook& hook = training.comm_hook;
  if (ranks.equal() || hook.kind != CommHookKind::post_local_sgd) return std::nullopt;
  const int subgroup = hook.post_local_sgd.subgroup;
  const std::vector<int>& nodes = ranks.of_each();
  if (subgroup > 0 &&
      std::all_of(nodes.begin(), nodes.end(), [&](int of_node) { return of_node % subgroup == 0; }))
    return std::nullopt;
  return refused("training.comm_hook",
                 fmt::format("subgroups of post_local_sgd have one size, and the nodes have {} "
                             "ranks: write a `subgroup` that divides each of these",
                             to_string(ranks)));
}

void check_bucketed(const StepWorks& works, const Training& training) {
  check(step_refusal(works, training, works.device));
  check(subgroup_refusal(training, works.ranks_per_node));
  if (works.clips_gradients && updates_parameters(training.comm_hook.kind))
    check(Refusal{"training.comm_hook",
                  fmt::format("{} updates parameters before all gradients are there, whose norm "
                              "clipping takes: take workload.clip_gradients out",
                              name_of(training.comm_hook.kind)),
                  {}});
}

std::string powersgd_refusal(const PowerSgd& state) {
  if (state.start_iteration >= 2 || (!state.error_feedback && !state.warm_start)) return "";
  return "expected at least 2: with error feedback or warm start the buckets must be the rebuilt "
         "ones";
}

std::string wrapper_refusal(CommHookKind wrapped, DType type) {
  if (!is_zero_step(wrapped)) return "";
  return fmt::format("{} reduces plainly: take {}_compress_wrapper away", name_of(wrapped),
                     name_of(type));
}

std::span<const ExclusiveKey> exclusive_keys() {
  static const std::array<ExclusiveKey, 3> keys{{
      {"bucket_caps", {}, "", [](const Training& t) { return !t.bucket_caps.empty(); }},
      {"buckets",
       {"bucket_caps"},
       "buckets and bucket_caps exclude each other",
       [](const Training& t) { return !t.buckets.empty(); }},
      {"parameter_groups",
       {"buckets", "bucket_caps"},
       "parameter_groups excludes buckets and bucket_caps",
       [](const Training& t) { return t.parameter_groups > 0; }},
  }};
  return keys;
}

}  // namespace ddpsim
