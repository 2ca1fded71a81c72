#include "tools/report/reports/idle_keys.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

/// A key that a scenario gives, as far as its value shows it.
struct GivenKey {
  std::string_view name;
  bool given;
};

std::string given_keys(std::initializer_list<GivenKey> keys) {
  std::vector<std::string> names;
  for (const GivenKey& each : keys)
    if (each.given) names.emplace_back(each.name);
  return names.empty() ? "" : "training: " + enumerated(names);
}

std::string ddp_keys(const Training& given) {
  const Training usual;
  return given_keys({
      {"bucket_cap", given.bucket_cap != usual.bucket_cap},
      {"bucket_rule", given.bucket_rule != usual.bucket_rule},
      {"first_bucket_cap", given.first_cap_given},
      {"last_bucket_cap", given.last_bucket_cap},
      {"bucket_caps", !given.bucket_caps.empty()},
      {"buckets", !given.buckets.empty()},
      {"parameter_groups", given.parameter_groups > 0},
      {"find_unused_parameters", given.find_unused_parameters},
      {"skip_all_reduce_unused_params", given.skip_all_reduce_unused_params},
      {"static_graph", given.static_graph},
      {"gradient_as_bucket_view", given.gradient_as_bucket_view},
      {"batched_grad_copy", given.batched_grad_copy},
      {"broadcast_buffers", given.broadcast_buffers != usual.broadcast_buffers},
      {"delay_all_reduce", given.delayed.has_value()},
      {"flattened_buckets", given.flattened_buckets},
      {"copied_buckets", given.copied_buckets},
  });
}

std::string fsdp_keys(const Training& given, bool policy_is_used) {
  const FsdpSettings usual;
  const auto of_fsdp = [&](auto member) { return given.*member != usual.*member; };
  return given_keys({
      {"fsdp", of_fsdp(&FsdpSettings::fsdp)},
      {"units", of_fsdp(&FsdpSettings::units)},
      {"reshard_after_forward", of_fsdp(&FsdpSettings::reshard_after_forward)},
      {"replicate", of_fsdp(&FsdpSettings::replicate)},
      {"reduce_scatter_max_input_buffers",
       of_fsdp(&FsdpSettings::reduce_scatter_max_input_buffers)},
      {"separate_reduce_scatter_group", of_fsdp(&FsdpSettings::separate_reduce_scatter_group)},
      {"forward_prefetch", of_fsdp(&FsdpSettings::forward_prefetch)},
      {"backward_prefetch", of_fsdp(&FsdpSettings::backward_prefetch)},
      {"reshard_after_backward", of_fsdp(&FsdpSettings::reshard_after_backward)},
      {"requires_all_reduce", of_fsdp(&FsdpSettings::requires_all_reduce)},
      {"cuda_device_max_connections", of_fsdp(&FsdpSettings::cuda_device_max_connections)},
      {"offload_policy", of_fsdp(&FsdpSettings::offload_policy)},
      {"mp_policy", of_fsdp(&FsdpSettings::mp_policy) && !policy_is_used},
      {"mp_policy.reduce_dtype", policy_is_used && given.mp_policy.reduce_dtype.has_value()},
  });
}

/// The settings of ZeRO whose strategy is not compared.
std::string zero_keys(const Scenario& scenario) {
  const auto is_idle = [&](Strategy strategy) {
    Training given = scenario.training, usual;
    given.strategy = usual.strategy = strategy;
    return std::ranges::find(scenario.compare, strategy) == scenario.compare.end() &&
           *given.zero() != *usual.zero();
  };
  return given_keys({{"zero1", is_idle(Strategy::zero1)},
                     {"zero2", is_idle(Strategy::zero2)},
                     {"zero3", is_idle(Strategy::zero3)}});
}

}  // namespace

std::vector<std::string> idle_key_notes(const Scenario& scenario) {
  const auto compares = [&](Strategy strategy) {
    return std::ranges::find(scenario.compare, strategy) != scenario.compare.end();
  };
  const auto any = [&](auto is_so) {
    return std::ranges::any_of(scenario.compare, [&](Strategy strategy) {
      Training training = scenario.training;
      training.strategy = strategy;
      return is_so(training);
    });
  };
  std::vector<std::string> notes;
  if (std::ranges::any_of(scenario.compare, shards) && !any(std::mem_fn(&Training::wraps_buckets)))
    if (const std::string keys = ddp_keys(scenario.training); !keys.empty())
      notes.push_back(fmt::format(
          "{}: {} without effect here: of DistributedDataParallel, and `compare` has no bucketed",
          scenario.name, keys));
  if (!compares(Strategy::fsdp))
    if (const std::string keys =
            fsdp_keys(scenario.training, any(std::mem_fn(&Training::has_policy)));
        !keys.empty())
      notes.push_back(fmt::format("{}: {} without effect here: of fsdp, and `compare` has no fsdp",
                                  scenario.name, keys));
  const auto& policy = scenario.training.mp_policy;
  const auto casts = [](const Training& training) {
    return training.has_policy() && training.zero() != nullptr;
  };
  if (compares(Strategy::fsdp) && any(casts) && policy.param_dtype && policy.reduce_dtype &&
      policy.param_dtype != policy.reduce_dtype)
    notes.push_back(fmt::format(
        "{}: training.mp_policy.reduce_dtype is of fsdp alone: gradients of DeepSpeed and "
        "Megatron-LM travel in {} here, those of fsdp in {}",
        scenario.name, name_of(*policy.param_dtype), name_of(*policy.reduce_dtype)));
  if (const std::string keys = zero_keys(scenario); !keys.empty())
    notes.push_back(fmt::format(
        "{}: {} without effect here: `compare` has no strategy of that name", scenario.name, keys));
  if (!scenario.measured) return notes;
  const auto& rows = scenario.measured->rows;
  if (std::ranges::any_of(rows, [](const MeasuredRow& row) {
        return row.communication && fits_of(row.strategy) == Fits::whole_step;
      }))
    notes.push_back(fmt::format(
        "{}: measured.rows: the communication of a row of a sharded step is fitted to nothing, as "
        "what is exposed of it is in the step: gathers and reduce-scatters are as the laws have "
        "them, and `ddpsim score` shows both",
        scenario.name));
  return notes;
}

}  // namespace ddpsim
