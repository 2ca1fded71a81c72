#include "tools/report/reports/sharding_words.hpp"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/ways/zero_ways.hpp"
#include "tools/report/reports/keys_text.hpp"
#include "tools/study/names.hpp"
#include "tools/study/wrapping.hpp"
#include "tools/study/zero_code.hpp"

namespace ddpsim {
namespace {

std::string blocks_text(int blocks) {
  if (blocks == 0) return "the scenario's units";
  return blocks == 1 ? "each block" : fmt::format("{} blocks a unit", blocks);
}

SettingWords words_of_blocks(const Sharding& sharding) {
  const bool has_own = !sharding.training.unit_settings.empty();
  return {blocks_text(sharding.blocks) + (has_own ? " and their settings" : ""),
          2 * sharding.blocks + (has_own ? 1 : 0), sharding.blocks == 1 && !has_own};
}

SettingWords words_of_reshard(const std::optional<Reshard>& reshard) {
  return {fmt::format("reshard {}", reshard_text(reshard)),
          !reshard                                ? 0
          : reshard->frees && reshard->ranks == 0 ? 1
          : !reshard->frees                       ? 2
                                                  : 3,
          !reshard};
}

SettingWords counted(int count, const char* what) {
  return {fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"), count, count == 1};
}

/// Of what is off by itself, and is not said then.
SettingWords flag(bool is_on, const char* text) {
  return {is_on ? text : "", 0, !is_on};
}

SettingWords option(const char* name, int value) {
  return {fmt::format("{} {}", name, value), value, value == 0};
}

std::vector<SettingWords> words_of_fsdp(const Sharding& sharding) {
  const FsdpSettings& its = sharding.training;
  return {words_of_blocks(sharding),
          flag(sharding.own_head, "own head"),
          words_of_reshard(its.reshard_after_forward),
          counted(its.replicate, "replica"),
          counted(its.reduce_scatter_max_input_buffers, "input"),
          flag(its.separate_reduce_scatter_group, "own group"),
          option("forward_prefetch", its.forward_prefetch),
          option("backward_prefetch", its.backward_prefetch)};
}

/// "buckets 50 M": millions of elements.
SettingWords millions(const char* what, std::int64_t size, std::int64_t standard) {
  return {fmt::format("{} {:g} M", what, static_cast<double>(size) * 1e-6), size, size == standard};
}

SettingWords ddp_buckets(const ZeroSettings& its) {
  if (!its.overlap_grad_reduce) return {};  // all is one
  if (!its.ddp_bucket_size) return {"buckets by default", 0, true};
  return millions("buckets", *its.ddp_bucket_size, -1);
}

/// An option that may be on by itself.
SettingWords on_or_off(bool is_on, bool standard, const char* name) {
  return {is_on ? name : fmt::format("no {}", name), is_on ? 1 : 0, is_on == standard};
}

std::vector<SettingWords> words_of_zero(const Training& training) {
  const ZeroSettings& its = *training.zero();
  const ZeroSettings standard = standard_zero(training);
  switch (its.variant) {
    case ZeroVariant::torch:
      return {on_or_off(its.parameters_as_bucket_view, false, "parameters_as_bucket_view")};
    case ZeroVariant::course:
      return {{fmt::format("send {}", name_of(its.send)), static_cast<std::int64_t>(its.send),
               its.send == standard.send}};
    case ZeroVariant::megatron:
      return {on_or_off(its.overlap_grad_reduce, false, "overlap_grad_reduce"),
              on_or_off(its.overlap_param_gather, false, "overlap_param_gather"), ddp_buckets(its),
              on_or_off(its.average_in_collective, false, "average_in_collective")};
    case ZeroVariant::deepspeed:
      break;
  }
  std::vector<SettingWords> words{
      on_or_off(its.overlap_comm, standard.overlap_comm, "overlap_comm"),
      millions("buckets", its.reduce_bucket_size, standard.reduce_bucket_size)};
  if (training.strategy == Strategy::zero3) {
    words.push_back(millions("ahead", its.prefetch_bucket_size, standard.prefetch_bucket_size));
    words.push_back(millions("live", its.max_live_parameters, standard.max_live_parameters));
    words.push_back(millions("reuse", its.max_reuse_distance, standard.max_reuse_distance));
    words.push_back({fmt::format("persistent {}", its.param_persistence_threshold),
                     its.param_persistence_threshold,
                     its.param_persistence_threshold == standard.param_persistence_threshold});
  }
  return words;
}

std::string fsdp_keys(const Scenario& scenario, const Sharding& sharding) {
  const Training &training = sharding.training, &given = scenario.training;
  std::vector<Setting> keys{{"training.strategy", "fsdp"}};
  // What the scenario has stays, but where another has to stand in its place.
  const bool are_said =
      !training.unit_settings.empty() ||
      (are_blocks(scenario.workload, training) && are_blocks(scenario.workload, given));
  const std::string units = are_said ? "" : units_text(scenario.workload, training);
  if (!units.empty()) keys.emplace_back("training.units", units);
  const auto add = [&](bool is_said, const char* key, const auto& value) {
    if (is_said) keys.emplace_back(fmt::format("training.{}", key), fmt::format("{}", value));
  };
  add(training.reshard_after_forward || given.reshard_after_forward, "reshard_after_forward",
      reshard_text(training.reshard_after_forward));
  add(training.replicate > 1 || given.replicate > 1, "replicate", training.replicate);
  add(training.reduce_scatter_max_input_buffers > 1 || given.reduce_scatter_max_input_buffers > 1,
      "reduce_scatter_max_input_buffers", training.reduce_scatter_max_input_buffers);
  add(training.separate_reduce_scatter_group || given.separate_reduce_scatter_group,
      "separate_reduce_scatter_group", training.separate_reduce_scatter_group);
  add(training.forward_prefetch > 0 || given.forward_prefetch > 0, "forward_prefetch",
      training.forward_prefetch);
  add(training.backward_prefetch > 0 || given.backward_prefetch > 0, "backward_prefetch",
      training.backward_prefetch);
  return keys_text(keys);
}

std::string zero_keys(const Scenario& scenario, const Training& training) {
  const std::string strategy(name_of(training.strategy));
  std::vector<Setting> keys{{"training.strategy", strategy}};
  const std::vector<std::string> options = zero_options(training, *scenario.training.zero());
  if (!options.empty())
    keys.emplace_back("training." + strategy, fmt::format("{{{}}}", fmt::join(options, ", ")));
  return keys_text(keys);
}

}  // namespace

std::vector<SettingWords> words_of_settings(const Sharding& sharding) {
  return sharding.training.strategy == Strategy::fsdp ? words_of_fsdp(sharding)
                                                      : words_of_zero(sharding.training);
}

std::string meaning_of_settings(const Training& training) {
  if (training.strategy == Strategy::fsdp)
    return "own head: what the root has behind the last block is a unit; reshard: "
           "training.reshard_after_forward; inputs: training.reduce_scatter_max_input_buffers; own "
           "group: training.separate_reduce_scatter_group; replicas: training.replicate";
  switch (training.zero()->variant) {
    case ZeroVariant::torch:
    case ZeroVariant::course:
      if (training.zero()->overlaps_each()) return "";
      return "gradients travel in DistributedDataParallel's buckets, as the scenario has them: "
             "--set training.strategy=bucketed tunes these";
    case ZeroVariant::megatron:
      return "buckets: ddp_bucket_size, in millions of elements";
    case ZeroVariant::deepspeed:
      break;
  }
  return training.strategy == Strategy::zero3
             ? "in millions of elements: buckets: reduce_bucket_size; ahead: "
               "stage3_prefetch_bucket_size; live: stage3_max_live_parameters; reuse: "
               "stage3_max_reuse_distance; in elements: persistent: "
               "stage3_param_persistence_threshold"
             : "buckets: reduce_bucket_size, in millions of elements";
}

std::string sharding_text(const Sharding& sharding) {
  std::vector<std::string> changes;
  for (const SettingWords& each : words_of_settings(sharding))
    if (!each.is_usual && !each.text.empty()) changes.push_back(each.text);
  if (!changes.empty()) return fmt::format("{}", fmt::join(changes, ", "));
  return sharding.training.strategy == Strategy::fsdp ? "each block" : "the default options";
}

std::string sharding_keys(const Scenario& scenario, const Sharding& sharding) {
  return sharding.training.strategy == Strategy::fsdp ? fsdp_keys(scenario, sharding)
                                                      : zero_keys(scenario, sharding.training);
}

}  // namespace ddpsim
