#include "tools/report/reports/throughput_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/parallel/passes_of.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/study/throughput.hpp"

namespace ddpsim {
namespace {

constexpr double hour = 3600, billion = 1e9, million = 1e6;

FieldValue share_of(Duration reference, Duration step) {
  if (reference == Duration::zero()) return {};
  return in_seconds(reference) / in_seconds(step);
}

/// What `amount` of something takes and costs, of which a step handles `per_step`.
void add_cost(Record& record, const Scenario& scenario, double seconds, double amount,
              double per_step, const Field& hours_field, const Field& cost_field) {
  const double hours = amount / per_step * seconds * scenario.cluster.ranks() / hour;
  record.add(hours_field, hours);
  if (scenario.price) record.add(cost_field, hours * scenario.price->per_hour);
}

void add_rates(Record& record, const Scenario& scenario, double seconds, const StepSamples& step) {
  const double ranks = scenario.cluster.ranks();
  record.add(fields::samples_per_second, step.samples / seconds)
      .add(fields::samples_per_second_per_device, step.samples / seconds / ranks);
  if (step.tokens)
    record.add(fields::tokens_per_second, *step.tokens / seconds)
        .add(fields::tokens_per_second_per_device, *step.tokens / seconds / ranks);
}

/// Takes out the column of HFU where it says what MFU says.
void drop_equal_hfu(Table& table) {
  const std::size_t mfu = table.index_of(fields::mfu), hfu = table.index_of(fields::hfu);
  const bool equal = std::all_of(table.rows.begin(), table.rows.end(),
                                 [&](const TableRow& row) { return row[mfu] == row[hfu]; });
  if (!equal) return;
  table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(hfu));
  for (TableRow& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(hfu));
}

/// Takes out the columns that hold nothing.
void drop_empty_columns(Table& table) {
  for (std::size_t c = table.columns.size(); c-- > 0;) drop_if_empty(table, c);
}

}  // namespace

double communication_share(Duration step, Duration none) {
  return std::max(0.0, in_seconds(step - none) / in_seconds(step));
}

Record throughput_record(const Scenario& scenario, const Result& result) {
  return throughput_record(scenario, result, result.step->metrics.step);
}

Record throughput_record(const Scenario& scenario, const Result& result, Duration step) {
  const Training& training = result.step->training;
  const double seconds = in_seconds(step);
  Record found;
  if (const auto flops = step_flops(passes_of(scenario.workload, training), scenario.cluster.device,
                                    training.micro_batches)) {
    if (flops->model)
      found.add(fields::model_flops, flops->model->flops)
          .add(fields::mfu, flops->model->seconds_at_peak / seconds);
    found.add(fields::hardware_flops, flops->executed.flops)
        .add(fields::hfu, flops->executed.seconds_at_peak / seconds);
  }
  found.add(fields::scaling_efficiency, share_of(result.one_rank, step))
      .add(fields::scaling_efficiency_node, share_of(result.one_node, step))
      .add(fields::communication_share, communication_share(step, result.none->step))
      .add(fields::fits_device, fits_value(scenario, memory_of(scenario, result)));
  if (const auto samples = samples_of(scenario, training)) {
    add_rates(found, scenario, seconds, *samples);
    add_cost(found, scenario, seconds, million, samples->samples,
             fields::device_hours_per_million_samples, fields::cost_per_million_samples);
    if (samples->tokens)
      add_cost(found, scenario, seconds, billion, *samples->tokens,
               fields::device_hours_per_billion_tokens, fields::cost_per_billion_tokens);
  }
  if (scenario.price) found.add(fields::currency, scenario.price->currency);
  Record ordered;
  for (const Field* field : fields::of_throughput) {
    const FieldValue* value = found.find(*field);
    ordered.add(*field, value == nullptr ? FieldValue() : *value);
  }
  return ordered;
}

void keep_what_does_not_fit(Table& table) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].name != fields::fits_device.name) continue;
    const bool some_do_not =
        std::any_of(table.rows.begin(), table.rows.end(),
                    [&](const TableRow& row) { return row[c] == FieldValue(false); });
    if (some_do_not) table.columns[c].importance = Importance::most;
  }
}

Table throughput_table(const Scenario& scenario, const std::vector<Result>& results) {
  const bool tokens = scenario.sequence > 0;
  Table table{{fields::strategy_in_words}};
  const auto add = [&](std::initializer_list<Field> columns) {
    table.columns.insert(table.columns.end(), columns);
  };
  if (tokens)
    add({fields::tokens_per_second, fields::tokens_per_second_per_device});
  else
    add({fields::samples_per_second, fields::samples_per_second_per_device});
  add({fields::mfu, fields::hfu, fields::scaling_efficiency, fields::scaling_efficiency_node,
       fields::communication_share});
  // Where steps are sharded the table before this one has them.
  if (!any_shards(results)) add({fields::peak_memory_bytes, fields::fits_device});
  if (tokens)
    add({fields::device_hours_per_billion_tokens, fields::cost_per_billion_tokens});
  else
    add({fields::device_hours_per_million_samples, fields::cost_per_million_samples});
  for (const Result& result : results)
    table.add(throughput_record(scenario, result)
                  .add(fields::strategy_in_words, strategy_label(result.step->training))
                  .add(fields::peak_memory_bytes, memory_of(scenario, result).peak.count));
  drop_equal_hfu(table);
  drop_empty_columns(table);
  if (scenario.price)
    table.notes = fmt::format("cost in {}, at {:g} for an hour of each device",
                              scenario.price->currency, scenario.price->per_hour);
  return table;
}

namespace {

Record point_record(const ScalingPoint& point) {
  Record record;
  record.add(fields::ranks, point.ranks())
      .add(fields::nodes, point.nodes)
      .add(fields::ranks_per_node, ranks_value(point.ranks_per_node))
      .add(fields::step_ms, in_ms(point.step))
      .add(fields::scaling_efficiency, point.efficiency)
      .add(fields::samples_per_second, point.samples_per_second)
      .add(fields::tokens_per_second, point.tokens_per_second);
  return record;
}

}  // namespace

List scaling_records(const ScalingCurve& curve) {
  List points;
  for (const ScalingPoint& point : curve.points) points.emplace_back(point_record(point));
  return points;
}

Table scaling_table(const std::vector<ScalingCurve>& curves) {
  Table table{{fields::strategy, fields::ranks, fields::nodes, fields::step_ms,
               fields::scaling_efficiency, fields::samples_per_second, fields::tokens_per_second}};
  table.title = "scaling: each rank keeps its batch; one rank trains by itself (none)";
  for (const ScalingCurve& curve : curves) {
    for (const ScalingPoint& point : curve.points)
      table.add(point_record(point).add(fields::strategy, point.ranks() == 1
                                                              ? std::string(name_of(Strategy::none))
                                                              : curve.label));
    if (!curve.missing.empty() && table.notes.find(curve.missing) == std::string::npos)
      table.notes += curve.missing + "\n";
  }
  drop_empty_columns(table);
  return table;
}

}  // namespace ddpsim
