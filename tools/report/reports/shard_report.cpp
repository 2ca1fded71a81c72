#include "tools/report/reports/shard_report.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/parallel/memory/peak_memory.hpp"
#include "tools/report/records/ms_text.hpp"
#include "tools/report/records/shard_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/sharding_words.hpp"
#include "tools/study/names.hpp"
#include "tools/study/wrapping.hpp"
#include "tools/study/zero_code.hpp"

namespace ddpsim {
namespace {

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

bool is_of_fsdp(const Sharding& sharding) {
  return sharding.training.strategy == Strategy::fsdp;
}

Table sharding_choices(const ShardTuning& tuning) {
  const bool has_units = is_of_fsdp(tuning.given_one());
  Table table{{fields::sharding_in_words, fields::number_of_units, fields::largest_unit_bytes,
               fields::sharded_step_ms, fields::sharded_exposed_ms,
               fields::sharded_peak_bytes.with(Importance::much), fields::over_each_block,
               fields::over_bound}};
  if (!has_units) table.columns.erase(table.columns.begin() + 1, table.columns.begin() + 3);
  for (Field& column : table.columns) column.look.absent = "";
  const Duration standard = tuning.standard_one().step;
  const auto add = [&](const std::string& name, const Sharding& each) {
    Record row;
    row.add(fields::sharding_in_words, name + unfit_mark(tuning, each))
        .add(fields::number_of_units, each.units)
        .add(fields::largest_unit_bytes, each.largest.count)
        .add(fields::sharded_step_ms, in_ms(each.step))
        .add(fields::sharded_exposed_ms, in_ms(each.exposed))
        .add(fields::sharded_peak_bytes, sharding_peak(each))
        .add(fields::over_each_block, longer_than(each.step, standard))
        .add(fields::over_bound, longer_than(each.step, tuning.lower_bound));
    table.add(row);
  };
  const bool is_given_the_default = tuning.given == tuning.standard;
  const std::string by_itself = sharding_text(tuning.standard_one());
  add(is_given_the_default ? by_itself + ", as in this scenario" : by_itself,
      tuning.standard_one());
  if (!is_given_the_default)
    add("this scenario: " + sharding_text(tuning.given_one()), tuning.given_one());
  if (tuning.advised != tuning.given && tuning.advised != tuning.best)
    add("recommended: " + sharding_text(tuning.advised_one()), tuning.advised_one());
  if (tuning.best != tuning.given && tuning.best != tuning.standard)
    add("best: " + sharding_text(tuning.best_one()), tuning.best_one());
  table.add(Record()
                .add(fields::sharding_in_words, "lower bound")
                .add(fields::sharded_step_ms, in_ms(tuning.lower_bound))
                .add(fields::over_each_block, longer_than(tuning.lower_bound, standard)));
  return table;
}

/// For each value of each setting, the best step that has it.
Table settings_table(const ShardTuning& tuning) {
  Table table{{fields::setting_value, fields::number_of_units, fields::sharded_step_ms,
               fields::sharded_peak_bytes.with(Importance::much), fields::over_each_block,
               fields::with_else}};
  if (!is_of_fsdp(tuning.given_one())) table.columns.erase(table.columns.begin() + 1);
  const Duration standard = tuning.standard_one().step;
  std::vector<std::vector<SettingWords>> words;  // [sharding][setting]
  std::size_t settings = 0;
  for (const Sharding& each : tuning.tried) {
    words.push_back(words_of_settings(each));
    settings = std::max(settings, words.back().size());
  }
  for (std::size_t setting = 0; setting < settings; ++setting) {
    std::map<std::pair<std::int64_t, std::string>, std::size_t> best;  // by value: the sharding
    for (std::size_t i = 0; i < words.size(); ++i)
      if (setting < words[i].size())
        best.try_emplace({words[i][setting].order, words[i][setting].text}, i);
    if (best.size() == 1) continue;
    for (const auto& [value, place] : best) {
      if (value.second.empty()) continue;
      const Sharding& found = tuning.tried[place];
      std::vector<std::string> others;
      for (std::size_t other = 0; other < words[place].size(); ++other)
        if (const SettingWords& said = words[place][other];
            other != setting && !said.is_usual && !said.text.empty())
          others.push_back(said.text);
      table.add(Record()
                    .add(fields::setting_value, value.second + unfit_mark(tuning, found))
                    .add(fields::number_of_units, found.units)
                    .add(fields::sharded_step_ms, in_ms(found.step))
                    .add(fields::sharded_peak_bytes, sharding_peak(found))
                    .add(fields::over_each_block, longer_than(found.step, standard))
                    .add(fields::with_else, fmt::format("{}", fmt::join(others, ", "))));
    }
  }
  table.title = "the best with each value of a setting";
  table.notes = meaning_of_settings(tuning.given_one().training);
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
  const std::string of_given = tuning.given != tuning.standard
                                   ? "this scenario's " + sharding_text(given)
                               : is_of_fsdp(given) ? "each block as a unit"
                                                   : sharding_text(given);
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

void add_fsdp_settings(Record& record, const Sharding& sharding) {
  const Training& training = sharding.training;
  record
      .add(fields::blocks_of_unit, sharding.blocks > 0 ? FieldValue(sharding.blocks) : FieldValue())
      .add(fields::own_head, sharding.own_head)
      .add(fields::reshard_after_forward, reshard_text(training.reshard_after_forward))
      .add(fields::replicate, training.replicate)
      .add(fields::reduce_scatter_max_input_buffers, training.reduce_scatter_max_input_buffers)
      .add(fields::separate_reduce_scatter_group, training.separate_reduce_scatter_group)
      .add(fields::forward_prefetch, training.forward_prefetch)
      .add(fields::backward_prefetch, training.backward_prefetch)
      .add(fields::number_of_units, sharding.units)
      .add(fields::largest_unit_bytes, sharding.largest.count);
}

void add_zero_options(Record& record, const Training& training) {
  const ZeroSettings& its = *training.zero();
  record.add(fields::zero_variant, name_of(its.variant));
  switch (its.variant) {
    case ZeroVariant::torch:
      record.add(fields::parameters_as_bucket_view, its.parameters_as_bucket_view);
      return;
    case ZeroVariant::course:
      record.add(fields::parameter_send, name_of(its.send))
          .add(fields::course_gradients, name_of(its.gradients));
      return;
    case ZeroVariant::deepspeed:
      record.add(fields::overlap_comm, its.overlap_comm)
          .add(fields::reduce_bucket_size, its.reduce_bucket_size);
      if (training.strategy == Strategy::zero3)
        record.add(fields::prefetch_bucket_size, its.prefetch_bucket_size)
            .add(fields::max_live_parameters, its.max_live_parameters)
            .add(fields::max_reuse_distance, its.max_reuse_distance)
            .add(fields::param_persistence_threshold, its.param_persistence_threshold);
      return;
    case ZeroVariant::megatron:
      record.add(fields::overlap_grad_reduce, its.overlap_grad_reduce)
          .add(fields::overlap_param_gather, its.overlap_param_gather)
          .add(fields::ddp_bucket_size,
               its.ddp_bucket_size ? FieldValue(*its.ddp_bucket_size) : FieldValue())
          .add(fields::average_in_collective, its.average_in_collective);
      return;
  }
}

Record sharding_record(const Scenario& scenario, const Sharding& sharding) {
  const bool is_known = scenario.cluster.device.memory > Bytes{};
  Record record;
  if (is_of_fsdp(sharding))
    add_fsdp_settings(record, sharding);
  else
    add_zero_options(record, sharding.training);
  record.add(fields::sharded_step_ms, in_ms(sharding.step))
      .add(fields::sharded_exposed_ms, in_ms(sharding.exposed))
      .add(fields::sharded_peak_bytes, sharding_peak(sharding))
      .add(fields::fits_device, is_known ? FieldValue(sharding.fits) : FieldValue());
  return record;
}

/// What the recommended sharding is in the words of whose code it is; "" where there are none.
std::string code_of(const Scenario& scenario, const Sharding& sharding) {
  if (is_of_fsdp(sharding))
    return fmt::format(
        "Python for the model, before the optimizer is made of its parameters:\n\n{}",
        fully_shard_code(sharded_as(scenario, sharding)));
  return zero_code(sharding.training);
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
  const std::string units =
      is_of_fsdp(tuning.given_one()) ? fmt::format(" in {} units", tuning.given_one().units) : "";
  page.add(Paragraph{fmt::format("{}\n{}: {:.1f} M parameters{}\n{}", scenario.name,
                                 shown_name(scenario.workload.name, "model"),
                                 static_cast<double>(scenario.workload.elements()) * 1e-6, units,
                                 cluster_text(scenario, knowledge))});
  page.add(Paragraph{described_modes_text(scenario)});
  page.add(Paragraph{code_text(scenario)});
  if (const std::string unfit = no_sharding_fits(scenario, tuning); !unfit.empty())
    page.add(Paragraph{fmt::format("Nothing fits: {}.", unfit)});
  page.add(sharding_choices(tuning));
  page.add(Paragraph{sharding_counts(scenario, tuning)});
  page.add(settings_table(tuning));
  page.add(Paragraph{sharding_verdict(tuning, options)});
  const Strategy strategy = scenario.training.strategy;
  page.add(Paragraph{knowledge.about(strategy) ? sentence(*knowledge.about(strategy))
                                               : no_band_text({std::string(name_of(strategy))})});
  const std::string code = code_of(scenario, tuning.advised_one());
  const std::string keys = tuning.pays
                               ? "keys for the scenario's training, beside those that it has:\n\n" +
                                     sharding_keys(scenario, tuning.advised_one())
                               : "the scenario stays as it is\n";
  page.add(Verbatim{keys + (code.empty() ? "" : "\n") + code});
  return page;
}

Record shards_record(const Scenario& scenario, const ShardTuning& tuning,
                     const std::vector<std::string>& notes) {
  List shardings;
  for (const Sharding& each : tuning.tried) shardings.emplace_back(sharding_record(scenario, each));
  Record record;
  record.add(fields::format, "ddpsim.shards/1")
      .add(fields::scenario, scenario.name)
      .add(fields::strategy, name_of(scenario.training.strategy))
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
  Table table;
  for (const NamedValue& each : sharding_record(scenario, tuning.best_one()).entries)
    table.columns.push_back(*each.field);
  for (const Sharding& each : tuning.tried) table.add(sharding_record(scenario, each));
  return table;
}

}  // namespace ddpsim
