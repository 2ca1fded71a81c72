#include "tools/report/reports/shard_report.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/parallel/memory/peak_memory.hpp"
#include "tools/report/records/ms_text.hpp"
#include "tools/report/records/shard_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/study/names.hpp"
#include "tools/study/wrapping.hpp"

namespace ddpsim {
namespace {

std::string blocks_text(int blocks) {
  if (blocks == 0) return "the scenario's units";
  return blocks == 1 ? "each block" : fmt::format("{} blocks a unit", blocks);
}

std::string inputs_text(int inputs) {
  return fmt::format("{} input{}", inputs, inputs == 1 ? "" : "s");
}

/// Settings that are other than by themselves, a phrase each.
std::vector<std::string> changes_of(const Sharding& sharding) {
  const Training& training = sharding.training;
  std::vector<std::string> texts;
  if (sharding.blocks != 1) texts.push_back(blocks_text(sharding.blocks));
  if (sharding.own_head) texts.emplace_back("own head");
  if (training.reshard_after_forward)
    texts.push_back(fmt::format("reshard {}", reshard_text(training.reshard_after_forward)));
  if (training.replicate > 1) texts.push_back(fmt::format("{} replicas", training.replicate));
  if (training.reduce_scatter_max_input_buffers > 1)
    texts.push_back(inputs_text(training.reduce_scatter_max_input_buffers));
  if (training.separate_reduce_scatter_group) texts.emplace_back("own group");
  return texts;
}

std::string sharding_text(const Sharding& sharding) {
  const std::vector<std::string> changes = changes_of(sharding);
  return changes.empty() ? "each block" : fmt::format("{}", fmt::join(changes, ", "));
}

double longer_than(Duration step, Duration whole) {
  return in_seconds(step) / in_seconds(whole) - 1;
}

FieldValue sharding_peak(const Sharding& sharding) {
  return sharding.peak > Bytes{} ? FieldValue(sharding.peak.count) : FieldValue();
}

/// "; does not fit": of a sharding beside others that do.
std::string unfit_mark(const ShardTuning& tuning, const Sharding& sharding) {
  return sharding.fits || !tuning.any_fits ? "" : " (does not fit)";
}

Table sharding_choices(const ShardTuning& tuning) {
  Table table{{fields::sharding_in_words, fields::number_of_units, fields::largest_unit_bytes,
               fields::sharded_step_ms, fields::sharded_exposed_ms,
               fields::sharded_peak_bytes.with(Importance::much), fields::over_each_block,
               fields::over_bound}};
  for (Field& column : table.columns) column.look.absent = "";
  const Duration standard = tuning.standard_one().step;
  const auto add = [&](const std::string& name, const Sharding& each) {
    table.add({name + unfit_mark(tuning, each), each.units, each.largest.count, in_ms(each.step),
               in_ms(each.exposed), sharding_peak(each), longer_than(each.step, standard),
               longer_than(each.step, tuning.lower_bound)});
  };
  const bool is_given_the_default = tuning.given == tuning.standard;
  add(is_given_the_default ? "each block, as in this scenario" : "each block",
      tuning.standard_one());
  if (!is_given_the_default)
    add("this scenario: " + sharding_text(tuning.given_one()), tuning.given_one());
  if (tuning.advised != tuning.given && tuning.advised != tuning.best)
    add("recommended: " + sharding_text(tuning.advised_one()), tuning.advised_one());
  if (tuning.best != tuning.given && tuning.best != tuning.standard)
    add("best: " + sharding_text(tuning.best_one()), tuning.best_one());
  table.add({"lower bound", FieldValue(), FieldValue(), in_ms(tuning.lower_bound), FieldValue(),
             FieldValue(), longer_than(tuning.lower_bound, standard), FieldValue()});
  return table;
}

/// For each value of each setting, the best step that has it.
Table settings_table(const ShardTuning& tuning) {
  Table table{{fields::setting_value, fields::number_of_units, fields::sharded_step_ms,
               fields::sharded_peak_bytes.with(Importance::much), fields::over_each_block,
               fields::with_else}};
  const Duration standard = tuning.standard_one().step;
  const auto add = [&](const std::string& value, auto&& has) {
    const auto found = std::ranges::find_if(tuning.tried, has);
    if (found == tuning.tried.end()) return;
    std::vector<std::string> others;
    for (const std::string& each : changes_of(*found))
      if (each != value) others.push_back(each);
    table.add({value + unfit_mark(tuning, *found), found->units, in_ms(found->step),
               sharding_peak(*found), longer_than(found->step, standard),
               fmt::format("{}", fmt::join(others, ", "))});
  };
  std::map<int, int> blocks, inputs, replicas;
  int heads = 0, groups = 0;
  for (const Sharding& each : tuning.tried) {
    ++blocks[each.blocks];
    ++inputs[each.training.reduce_scatter_max_input_buffers];
    ++replicas[each.training.replicate];
    heads += each.own_head ? 1 : 0;
    groups += each.training.separate_reduce_scatter_group ? 1 : 0;
  }
  for (const auto& [value, count] : blocks)
    add(blocks_text(value), [&](const Sharding& each) { return each.blocks == value; });
  if (heads > 0) add("own head", [](const Sharding& each) { return each.own_head; });
  for (const auto& reshard :
       {std::optional<Reshard>(), std::optional(Reshard(true)), std::optional(Reshard(false))})
    add(fmt::format("reshard {}", reshard_text(reshard)),
        [&](const Sharding& each) { return each.training.reshard_after_forward == reshard; });
  for (const auto& [value, count] : inputs)
    add(inputs_text(value), [&](const Sharding& each) {
      return each.training.reduce_scatter_max_input_buffers == value;
    });
  if (groups > 0)
    add("own group",
        [](const Sharding& each) { return each.training.separate_reduce_scatter_group; });
  if (replicas.size() > 1)
    for (const auto& [value, count] : replicas)
      add(fmt::format("{} replica{}", value, value == 1 ? "" : "s"),
          [&](const Sharding& each) { return each.training.replicate == value; });
  table.title = "the best with each value of a setting";
  table.notes =
      "own head: what the root has behind the last block is a unit; reshard: "
      "training.reshard_after_forward; inputs: training.reduce_scatter_max_input_buffers; own "
      "group: training.separate_reduce_scatter_group; replicas: training.replicate";
  return table;
}

std::string sharding_counts(const Scenario& scenario, const ShardTuning& tuning) {
  const auto fit = std::ranges::count(tuning.tried, true, &Sharding::fits);
  const bool is_known = scenario.cluster.device.memory > Bytes{};
  return fmt::format(
      "A step without communication takes {} ms. {} shardings were simulated{}; none of them is "
      "faster than the lower bound.",
      ms_text(tuning.without), tuning.tried.size(),
      is_known ? fmt::format(", {} of which fit {}", fit, to_string(scenario.cluster.device.memory))
               : "");
}

std::string sharding_verdict(const ShardTuning& tuning, const ShardOptions& options) {
  const Sharding &given = tuning.given_one(), &advised = tuning.advised_one();
  const std::string of_given = tuning.given == tuning.standard
                                   ? "each block as a unit"
                                   : "this scenario's " + sharding_text(given);
  if (!tuning.pays) {
    const double best = -longer_than(tuning.best_one().step, given.step);
    if (options.least_memory)
      return fmt::format(
          "verdict: no sharding within {:.3g} % of the shortest step takes less "
          "memory: keep {}",
          100 * options.within, of_given);
    return best < 0.0005 ? fmt::format("verdict: tuning does not pay: nothing beats {}", of_given)
                         : fmt::format(
                               "verdict: tuning does not pay: the best would save {:.1f} "
                               "%, within noise: keep {}",
                               100 * best, of_given);
  }
  std::string text = fmt::format("verdict: {} instead of {} ", sharding_text(advised), of_given);
  const double saved = tuning.gain();
  if (!given.fits && advised.fits)
    text += fmt::format("fits, in {}, ", to_string(advised.peak));
  else if (options.least_memory)
    text += fmt::format("takes {} of memory in place of {}, ", to_string(advised.peak),
                        to_string(given.peak));
  text += fmt::format("{} {:.1f} % of the step ({} -> {} ms)", saved >= 0 ? "saves" : "costs",
                      100 * std::abs(saved), ms_text(given.step), ms_text(advised.step));
  if (tuning.advised != tuning.best)
    text += fmt::format("; {} is as good, within 0.1 %, with more settings to change",
                        sharding_text(tuning.best_one()));
  return text;
}

/// `training: {strategy: fsdp, reshard_after_forward: false}`
std::string sharding_keys(const Scenario& scenario, const Sharding& sharding) {
  const Training &training = sharding.training, &given = scenario.training;
  std::vector<std::string> keys{"strategy: fsdp"};
  if (const std::string units = units_text(scenario.workload, training); !units.empty())
    keys.push_back("units: " + units);
  const auto add = [&](bool is_said, const char* key, const auto& value) {
    if (is_said) keys.push_back(fmt::format("{}: {}", key, value));
  };
  add(training.reshard_after_forward || given.reshard_after_forward, "reshard_after_forward",
      reshard_text(training.reshard_after_forward));
  add(training.replicate > 1 || given.replicate > 1, "replicate", training.replicate);
  add(training.reduce_scatter_max_input_buffers > 1 || given.reduce_scatter_max_input_buffers > 1,
      "reduce_scatter_max_input_buffers", training.reduce_scatter_max_input_buffers);
  add(training.separate_reduce_scatter_group || given.separate_reduce_scatter_group,
      "separate_reduce_scatter_group", training.separate_reduce_scatter_group);
  return fmt::format("training: {{{}}}\n", fmt::join(keys, ", "));
}

Record sharding_record(const Scenario& scenario, const Sharding& sharding) {
  const Training& training = sharding.training;
  const bool is_known = scenario.cluster.device.memory > Bytes{};
  Record record;
  record
      .add(fields::blocks_of_unit, sharding.blocks > 0 ? FieldValue(sharding.blocks) : FieldValue())
      .add(fields::own_head, sharding.own_head)
      .add(fields::reshard_after_forward, reshard_text(training.reshard_after_forward))
      .add(fields::replicate, training.replicate)
      .add(fields::reduce_scatter_max_input_buffers, training.reduce_scatter_max_input_buffers)
      .add(fields::separate_reduce_scatter_group, training.separate_reduce_scatter_group)
      .add(fields::number_of_units, sharding.units)
      .add(fields::largest_unit_bytes, sharding.largest.count)
      .add(fields::sharded_step_ms, in_ms(sharding.step))
      .add(fields::sharded_exposed_ms, in_ms(sharding.exposed))
      .add(fields::sharded_peak_bytes, sharding_peak(sharding))
      .add(fields::fits_device, is_known ? FieldValue(sharding.fits) : FieldValue());
  return record;
}

}  // namespace

Scenario sharded_as(const Scenario& scenario, const Sharding& sharding) {
  Scenario changed = scenario;
  changed.training = sharding.training;
  return changed;
}

std::string no_sharding_fits(const Scenario& scenario, const ShardTuning& tuning) {
  if (tuning.any_fits) return "";
  const auto least = std::ranges::min_element(tuning.tried, {}, &Sharding::peak);
  return fmt::format(
      "no sharding fits {} of {}: the least takes {}, with {}; what follows holds only where it "
      "fits; activation checkpoints, smaller batches or more GPUs take less (ddpsim plan)",
      shown_name(scenario.cluster.device.name, "device"), to_string(scenario.cluster.device.memory),
      to_string(least->peak), sharding_text(*least));
}

Page shards_page(const Scenario& scenario, const ShardTuning& tuning, const ShardOptions& options,
                 const Knowledge& knowledge) {
  Page page;
  page.add(Paragraph{fmt::format("{}\n{}: {:.1f} M parameters in {} units\n{}", scenario.name,
                                 shown_name(scenario.workload.name, "model"),
                                 static_cast<double>(scenario.workload.elements()) * 1e-6,
                                 tuning.given_one().units, cluster_text(scenario, knowledge))});
  page.add(Paragraph{described_modes_text(scenario)});
  page.add(Paragraph{code_text(scenario)});
  page.add(sharding_choices(tuning));
  page.add(Paragraph{sharding_counts(scenario, tuning)});
  page.add(settings_table(tuning));
  page.add(Paragraph{sharding_verdict(tuning, options)});
  page.add(Paragraph{no_band_text({std::string(name_of(Strategy::fsdp))})});
  page.add(Verbatim{fmt::format(
      "{}:\n\n{}\nPython for the model, before the optimizer is made of its "
      "parameters:\n\n{}",
      tuning.pays ? "keys for the scenario, beside those that it has" : "as the scenario is",
      sharding_keys(scenario, tuning.advised_one()),
      fully_shard_code(sharded_as(scenario, tuning.advised_one())))});
  return page;
}

Record shards_record(const Scenario& scenario, const ShardTuning& tuning,
                     const std::vector<std::string>& notes) {
  List shardings;
  for (const Sharding& each : tuning.tried) shardings.emplace_back(sharding_record(scenario, each));
  Record record;
  record.add(fields::format, "ddpsim.shards/1")
      .add(fields::scenario, scenario.name)
      .add(fields::cluster, cluster_record(scenario))
      .add(described_entry(scenario))
      .add(fields::notes, list_of(notes))
      .add(fields::advised_sharding, sharding_record(scenario, tuning.advised_one()))
      .add(fields::sharding_pays, tuning.pays)
      .add(fields::best_sharding, sharding_record(scenario, tuning.best_one()))
      .add(fields::given_sharding, sharding_record(scenario, tuning.given_one()))
      .add(fields::default_sharding, sharding_record(scenario, tuning.standard_one()))
      .add(fields::sharding_bound_ms, in_ms(tuning.lower_bound))
      .add(fields::without_communication_ms, in_ms(tuning.without))
      .add(fields::evaluated, tuning.tried.size())
      .add(fields::shardings, std::move(shardings));
  return record;
}

Table shards_table(const Scenario& scenario, const ShardTuning& tuning) {
  Table table{{fields::blocks_of_unit, fields::own_head, fields::reshard_after_forward,
               fields::replicate, fields::reduce_scatter_max_input_buffers,
               fields::separate_reduce_scatter_group, fields::number_of_units,
               fields::largest_unit_bytes, fields::sharded_step_ms, fields::sharded_exposed_ms,
               fields::sharded_peak_bytes, fields::fits_device}};
  for (const Sharding& each : tuning.tried) table.add(sharding_record(scenario, each));
  return table;
}

}  // namespace ddpsim
