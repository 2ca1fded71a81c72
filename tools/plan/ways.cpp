#include "tools/plan/ways.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

using Settings = std::vector<Setting>;

constexpr const char* checkpoints_key = "workload.activation_checkpointing";

bool touches_any(const Settings& set, std::string_view key) {
  return is_said(set, key) ||
         std::ranges::any_of(set, [&](const Setting& each) { return touches(each, key); });
}

/// Can the scenario be read with that as well?
bool is_taken(const PlanRequest& request, const Settings& more) {
  Settings all = request.set;
  all.insert(all.end(), more.begin(), more.end());
  try {
    read_scenario(request.file, all);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// Might blocks be activation checkpoints, and are none so far?
bool may_checkpoint(const PlanRequest& request, const Scenario& base) {
  if (is_said(request.set, checkpoints_key)) return false;
  for (const Layer& layer : base.workload.layers)
    for (const Kernel& kernel : layer.backward)
      if (kernel.recomputed == 1) return false;
  return is_taken(request, {{checkpoints_key, "full"}});  // else the model has no such blocks
}

/// Would a policy that casts parameters to bf16 take the place of autocast under the strategy?
bool may_cast(const PlanRequest& request, const Scenario& base, Strategy strategy,
              const Setting& policy) {
  const bool is_fp32 = std::ranges::all_of(
      base.workload.parameters,
      [](const Parameter& parameter) { return parameter.dtype == DType::fp32; });
  return main_format(base.workload) == DType::bf16 && is_fp32 &&
         base.training.mp_policy == MixedPrecision{} &&
         !touches_any(request.set, "training.mp_policy") &&
         is_taken(request, {{"training.strategy", std::string(name_of(strategy))}, policy});
}

PlannedWay with(PlannedWay way, std::string_view name, const std::optional<Setting>& setting) {
  if (setting) way.settings.push_back(*setting);
  way.name += name;
  return way;
}

/// fsdp with its settings. `way`: what is said of it already.
std::vector<PlannedWay> sharded_ways(const PlanRequest& request, const Scenario& base,
                                     const std::vector<PlannedSize>& sizes, const PlannedWay& way) {
  std::vector<PlannedWay> ways{way};
  const Setting policy{"training.mp_policy", "{param_dtype: bf16, reduce_dtype: fp32}"};
  if (may_cast(request, base, way.strategy, policy))
    ways.push_back(with(way, mixed_precision, policy));
  const bool has_nodes = std::ranges::any_of(
      sizes, [](const PlannedSize& size) { return size.nodes > 1 && size.nodes < size.ranks; });
  if (has_nodes && base.training.replicate == 1 && !is_said(request.set, "training.replicate")) {
    ways.push_back(with(ways.back(), replicas, std::nullopt));
    ways.back().replicates = true;
  }
  const std::string key = "training.reshard_after_forward";
  if (is_said(request.set, key)) return ways;
  const std::optional<Reshard>& own = base.training.reshard_after_forward;
  std::vector<PlannedWay> all;
  for (const PlannedWay& each : ways) {
    all.push_back(with(each, "", Setting{key, "auto"}));
    all.push_back(with(each, no_reshard, Setting{key, "false"}));
    if (own && own->frees)
      all.push_back(with(each, fmt::format(", reshard {}", reshard_text(own)),
                         Setting{key, reshard_text(own)}));
  }
  return all;
}

/// Another strategy: its settings stay, but for mixed precision where it casts parameters itself.
std::vector<PlannedWay> other_ways(const PlanRequest& request, const Scenario& base,
                                   const Training& training, const PlannedWay& way) {
  std::vector<PlannedWay> ways{way};
  const Setting policy{"training.mp_policy", "{param_dtype: bf16}"};
  if (training.has_policy() && may_cast(request, base, way.strategy, policy))
    ways.push_back(with(way, mixed_precision, policy));
  return ways;
}

/// Those of ZeRO that the scenario compares stand between what keeps all and what shards all.
std::vector<Strategy> usual_strategies(const Scenario& base) {
  std::vector<Strategy> strategies{Strategy::bucketed};
  for (const Strategy zero : {Strategy::zero1, Strategy::zero2, Strategy::zero3})
    if (std::ranges::find(base.compare, zero) != base.compare.end()) strategies.push_back(zero);
  strategies.push_back(Strategy::fsdp);
  return strategies;
}

/// Each of the ways, with every block as a checkpoint, and with every second one.
std::vector<PlannedWay> with_checkpoints(const std::vector<PlannedWay>& ways) {
  std::vector<PlannedWay> all;
  for (const PlannedWay& way : ways) {
    const std::size_t less = all.size();
    all.push_back(way);
    PlannedWay& full = all.emplace_back(way);
    full.settings.emplace_back(checkpoints_key, "full");
    full.name += checkpoints;
    PlannedWay& half = all.emplace_back(way);
    half.settings.emplace_back(checkpoints_key, "2");
    half.name += some_checkpoints;
    half.between = {less, less + 1};
  }
  return all;
}

}  // namespace

bool is_said(const std::vector<Setting>& set, std::string_view key) {
  return std::ranges::any_of(set, [&](const Setting& setting) {
    return setting.key == key || said_within(setting, key).has_value();
  });
}

std::vector<PlannedWay> ways_of(const PlanRequest& request, const Scenario& base,
                                const std::vector<PlannedSize>& sizes) {
  std::vector<Strategy> strategies = request.strategies;
  const bool is_set = is_said(request.set, "training.strategy");
  if (is_set && !strategies.empty())
    throw InputError("--strategies says which are tried: leave training.strategy out of --set");
  if (is_set)
    strategies = {base.training.strategy};
  else if (strategies.empty())
    strategies = usual_strategies(base);
  std::vector<PlannedWay> ways;
  for (const Strategy strategy : strategies) {
    const std::string name(name_of(strategy));
    Training training = base.training;
    training.strategy = strategy;
    PlannedWay way{strategy, {}, short_strategy_label(training)};
    if (!is_set) way.settings.emplace_back("training.strategy", name, "--strategies " + name);
    if (training.is_fsdp1())
      throw InputError(
          "training.fsdp.variant: plan tries settings of fully_shard: take variant: fsdp1 out");
    for (PlannedWay& each : strategy == Strategy::fsdp ? sharded_ways(request, base, sizes, way)
                                                       : other_ways(request, base, training, way))
      ways.push_back(std::move(each));
  }
  return may_checkpoint(request, base) ? with_checkpoints(ways) : ways;
}

std::optional<std::vector<Setting>> settings_at(const PlannedWay& way, const PlannedSize& size) {
  if (!way.replicates) return way.settings;
  if (size.nodes == 1 || size.nodes == size.ranks) return std::nullopt;
  Settings settings = way.settings;
  settings.emplace_back("training.replicate", fmt::format("{}", size.nodes));
  return settings;
}

std::string ends_explained(const std::vector<std::string>& names) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> meanings{
      {{mixed_precision,
        "training.mp_policy, under which parameters are cast before the passes, in place of "
        "autocast"},
       {replicas, "training.replicate: a replica of the parts on each node"},
       {no_reshard,
        "training.reshard_after_forward: false, so that units stay gathered between the passes"},
       {checkpoints,
        "workload.activation_checkpointing: full, so that blocks keep their input alone and run "
        "forward again"},
       {some_checkpoints, "every second block so, tried where none does not fit and all do"}}};
  std::string text;
  for (const auto& [end, meaning] : meanings) {
    const auto has = [&](const std::string& name) {
      const std::size_t at = name.find(end);
      const std::size_t behind = at + end.size();
      return at != std::string::npos && (behind == name.size() || name[behind] == ',');
    };
    if (std::ranges::any_of(names, has))
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", end.substr(2), meaning);
  }
  return text;
}

}  // namespace ddpsim
