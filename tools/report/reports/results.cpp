#include "tools/report/reports/results.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/timeline/port_bytes.hpp"
#include "tools/report/records/choice_record.hpp"
#include "tools/report/records/memory_fields.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/records/unit_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/throughput_report.hpp"
#include "tools/report/reports/unit_report.hpp"
#include "tools/report/writers/chart.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

Record bucket_record(const Scenario& scenario, const program::ParameterGroup& bucket,
                     const BucketTimes& times, std::size_t index) {
  List names;
  for (const std::int32_t parameter : bucket.parameters)
    names.emplace_back(scenario.workload.parameters[static_cast<std::size_t>(parameter)].name);
  Record record;
  record.add(fields::index, index)
      .add(fields::bytes, bucket.size.count)
      .add(fields::parameters, std::move(names))
      .add(fields::ready_ms, in_ms(times.ready))
      .add(fields::start_ms, in_ms(times.start))
      .add(fields::end_ms, in_ms(times.end))
      .add(fields::bucket_exposed_ms, in_ms(times.exposed));
  add_choice(record, times.choice);
  return record;
}

/// Nothing unless one cap is what makes the buckets.
FieldValue cap_of(const Training& training) {
  return has_one_cap(training) ? FieldValue(training.bucket_cap.count) : FieldValue();
}

/// The names of the CS336 result tables.
std::string implementation(Strategy strategy) {
  return strategy == Strategy::overlap ? "overlap_individual" : std::string(name_of(strategy));
}

FieldValue count_or_nothing(int value) {
  return value > 0 ? FieldValue(value) : FieldValue();
}

/// The figures of a step without its buckets.
Record figures_of(const Result& result) {
  const StepMetrics& metrics = result.step->metrics;
  Record record;
  record.add(fields::strategy, name_of(result.step->training.strategy))
      .add(fields::result_label, strategy_label(result.step->training))
      .add(fields::bucket_cap_bytes, cap_of(result.step->training))
      .add(fields::step_ms, in_ms(metrics.step))
      .add(fields::forward_ms, in_ms(metrics.forward))
      .add(fields::backward_ms, in_ms(metrics.backward))
      .add(fields::optimizer_ms, in_ms(metrics.optimizer))
      .add(fields::communication_ms, in_ms(metrics.communication))
      .add(fields::exposed_ms, in_ms(exposed(metrics, *result.none)))
      .add(fields::overlap_ratio, overlap_ratio(metrics, *result.none))
      .add(fields::collectives, metrics.collectives)
      .add(fields::wire_bytes, result.step->job().ranks() > 1 ? metrics.wire.count : 0)
      .add(fields::speedup_vs_naive,
           result.step->job().ranks() > 1 ? FieldValue(result.speedup()) : FieldValue())
      .add(fields::bound, name_of(metrics.bound));
  return record;
}

/// Even without communication a step ends with the slowest rank, and when its next batches are
/// there.
std::string wait_in_none(const Result& result) {
  const Duration slowest = result.none->working() - result.one_rank,
                 input = result.none->input_wait;
  std::string waits;
  if (result.one_rank > Duration::zero() && slowest > Duration::zero())
    waits = fmt::format(", {:.2f} of it the wait for the slowest rank", in_ms(slowest));
  if (input > Duration::zero())
    waits += fmt::format("{} {:.2f} {}the wait for batches", waits.empty() ? "," : " and",
                         in_ms(input), waits.empty() ? "of it " : "");
  return waits;
}

/// Whose step without communication is told first: that of a strategy under which all ranks keep
/// all, if one is compared.
const Result& told_first(const std::vector<Result>& results) {
  for (const Result& result : results)
    if (!shards(result.step->training.strategy)) return result;
  return results.front();
}

/// Where other steps stand for one without communication: what the passes of strategies that shard
/// and their part of the update take.
std::string other_none_text(const std::vector<Result>& results) {
  std::vector<Duration> told{told_first(results).none->step};
  std::string text;
  for (const Result& result : results) {
    const Duration step = result.none->step;
    if (std::ranges::find(told, step) != told.end()) continue;
    text += fmt::format("{} of {} {:.2f} ms",
                        told.size() == 1 ? ", with the passes and the part of the update" : ",",
                        strategy_label(result.step->training), in_ms(step));
    told.push_back(step);
  }
  return text;
}

/// What exposed communication is. A step is exposed by what it works for longer.
std::string exposed_text(const std::vector<Result>& results) {
  const bool input = std::ranges::any_of(results, [](const Result& result) {
    return result.none->input_wait > Duration::zero() ||
           result.step->metrics.input_wait > Duration::zero();
  });
  return fmt::format("Exposed is how much longer a step is than that{}",
                     input ? ", the wait for batches left out of both" : "");
}

}  // namespace

Texts texts_of(const std::vector<Setting>& settings) {
  Texts texts;
  for (const Setting& setting : settings) texts.emplace_back(setting.key, setting.value);
  return texts;
}

Record record_without_buckets(const Scenario& scenario, const Result& result) {
  const std::string& hook = result.step->job().hook;
  const StepMetrics& metrics = result.step->metrics;
  const StepMemory memory = memory_of(scenario, result);
  Record record = figures_of(result);
  if (!hook.empty())  // its first part is what people call it
    record.add(fields::comm_hook, hook.substr(0, hook.find(';')))
        .add(fields::comm_hook_ms, in_ms(metrics.comm_hook))
        .add(fields::comm_hook_memory_bytes, memory.most[program::Holds::hook].count);
  record.add(fields::memory, memory_record(scenario, *result.step, memory));
  return record;
}

Record result_record(const Scenario& scenario, const Result& result) {
  const std::vector<program::ParameterGroup>& groups = result.step->job().groups;
  Record record = record_without_buckets(scenario, result);
  List buckets;
  const bool units = has_units(*result.step);
  for (std::size_t b = 0; b < groups.size() && !units; ++b)
    buckets.emplace_back(bucket_record(scenario, groups[b], result.step->metrics.buckets[b], b));
  record.add(fields::buckets, std::move(buckets));
  if (units) record.add(fields::units, unit_records(scenario, *result.step, false));
  return record;
}

List list_of(const std::vector<std::string>& sentences) {
  return List(sentences.begin(), sentences.end());
}

Record run_record(const Scenario& scenario, const std::vector<std::string>& notes, List results) {
  Record record;
  record.add(fields::format, "ddpsim.run/1")
      .add(fields::scenario, scenario.name)
      .add(fields::ranks, scenario.cluster.ranks())
      .add(fields::cluster, cluster_record(scenario))
      .add(described_entry(scenario))
      .add(fields::notes, list_of(notes))
      .add(fields::results, std::move(results));
  return record;
}

bool any_shards(const std::vector<Result>& results) {
  return std::ranges::any_of(
      results, [](const Result& each) { return shards(each.step->training.strategy); });
}

void add_port_bytes(Record& record, const Step& step) {
  record.add(fields::port_bytes, port_bytes(step.rank()).count);
}

const std::vector<Field>& run_columns() {
  static const std::vector<Field> columns = [] {
    std::vector<Field> all{fields::implementation,
                           fields::model_size,
                           fields::d_model,
                           fields::num_layers,
                           fields::world_size,
                           fields::step_ms,
                           fields::speedup_vs_naive,
                           fields::strategy,
                           fields::scenario,
                           fields::bucket_cap_bytes,
                           fields::forward_ms,
                           fields::backward_ms,
                           fields::optimizer_ms,
                           fields::communication_ms,
                           fields::exposed_ms,
                           fields::overlap_ratio,
                           fields::collectives,
                           fields::wire_bytes,
                           fields::bound,
                           fields::peak_memory_bytes};
    for (const Field* field : fields::of_throughput) all.push_back(*field);
    all.insert(all.end(), {fields::band_low_ms, fields::band_high_ms, fields::known_from});
    return all;
  }();
  return columns;
}

Record run_row(const Comparison& run, const Result& result) {
  const Scenario& scenario = run.scenario;
  Record record = figures_of(result);
  record.add(fields::implementation, implementation(result.step->training.strategy))
      .add(fields::model_size, scenario.workload.name)
      .add(fields::d_model, count_or_nothing(scenario.d_model))
      .add(fields::num_layers, count_or_nothing(scenario.num_layers))
      .add(fields::world_size, scenario.cluster.ranks())
      .add(fields::scenario, scenario.name)
      .add(fields::peak_memory_bytes, memory_of(scenario, result).peak.count)
      .add(throughput_record(scenario, result))
      .add(band_record(run.knowledge, result.step->training.strategy, result.step->metrics,
                       result.none->working(), least_step(scenario)));
  return record;
}

Record in_the_long_run(Record record, const Comparison& run, const Result& result) {
  const Duration lasting = result.lasting();
  if (lasting == result.step->metrics.step) return record;
  Record mean;
  mean.add(fields::step_ms, in_ms(lasting))
      .add(fields::exposed_ms, in_ms(lasting - result.none->step))
      .add(fields::speedup_vs_naive, in_seconds(result.naive->step) / in_seconds(lasting))
      .add(throughput_record(run.scenario, result, lasting))
      .add(band_record(run.knowledge, result.step->training.strategy, result.step->metrics,
                       result.none->working(), least_step(run.scenario),
                       lasting - result.step->metrics.step));
  for (NamedValue& entry : record.entries)
    if (const FieldValue* value = mean.find(*entry.field)) entry.value = *value;
  return record;
}

namespace {

/// Where strategies that shard stand beside others, what they save and what that costs comes first.
std::vector<Field> ladder_columns() {
  constexpr auto some = static_cast<Importance>(4);
  return {fields::strategy_in_words,
          fields::step_ms,
          fields::forward_ms,
          fields::backward_ms,
          fields::optimizer_ms,
          fields::communication_ms.with(fields::little),
          fields::exposed_ms,
          fields::overlap.with(some),
          fields::speedup_vs_naive,
          fields::collectives.with(fields::usual),
          fields::port_bytes,
          fields::peak_memory_bytes.with(fields::much),
          fields::fits_device.with(fields::much),
          fields::bound.with(some)};
}

}  // namespace

Page run_page(const Scenario& scenario, const std::vector<Result>& results,
              const Knowledge& knowledge) {
  Page page;
  page.add(Paragraph{fmt::format(
      "{}\n{}: {} tensors, {:.1f} M parameters, {} of gradients\n{}", scenario.name,
      shown_name(scenario.workload.name, "model"), scenario.workload.parameters.size(),
      static_cast<double>(scenario.workload.elements()) * 1e-6,
      to_string(scenario.workload.gradient_size()), cluster_text(scenario, knowledge))});
  page.add(Paragraph{described_text(scenario)});
  page.add(Paragraph{code_text(scenario)});
  const bool units = any_shards(results);
  Table table{
      units ? ladder_columns()
            : std::vector<Field>{fields::strategy_in_words, fields::step_ms, fields::forward_ms,
                                 fields::backward_ms, fields::optimizer_ms,
                                 fields::communication_ms, fields::exposed_ms, fields::overlap,
                                 fields::speedup_vs_naive, fields::collectives, fields::bound}};
  if (!partial_text(scenario).empty()) table.title = "partial results";
  std::vector<NamedStep> steps;
  for (const Result& result : results) {
    steps.push_back({strategy_label(result.step->training), result.step});
    Record record = figures_of(result);
    record.add(fields::overlap, result.step->metrics.communication > Duration::zero()
                                    ? *record.find(fields::overlap_ratio)
                                    : FieldValue());
    if (units) {
      const StepMemory memory = memory_of(scenario, result);
      add_port_bytes(record, *result.step);
      record.add(fields::peak_memory_bytes, memory.peak.count)
          .add(fields::fits_device, fits_value(scenario, memory));
    }
    table.add(record);
  }
  page.add(std::move(table));
  page.add(Paragraph{
      fmt::format("A step without communication takes {:.2f} ms{}{}. {}; {}.\n{}",
                  in_ms(told_first(results).none->step), wait_in_none(told_first(results)),
                  other_none_text(results), exposed_text(results),
                  scenario.cluster.ranks() > 1
                      ? "speedup is how many times as fast as naive it is"
                      : "one rank averages with nobody: there is no speedup over naive",
                  memory_text(scenario, results))});
  page.add(throughput_table(scenario, results));
  page.add(Drawing{[steps](PageWidth width) { return timeline_chart(steps, width); }});
  return page;
}

}  // namespace ddpsim
