#include "tools/report/reports/step_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/parallel/policy/iteration.hpp"
#include "model/timeline/busy_overlap.hpp"
#include "model/timeline/metrics.hpp"
#include "sim/predict/predict.hpp"
#include "tools/report/records/ms_text.hpp"
#include "tools/report/records/steps_fields.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/unit_report.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_rows = 20;

std::string range_text(std::size_t begin, std::size_t end) {
  return end == begin + 1 ? fmt::format("{}", end) : fmt::format("{}-{}", begin + 1, end);
}

/// A row for every stretch of one strategy's steps.
void add_stretches(Table& table, const std::string& name, const ConsecutiveSteps& steps) {
  std::size_t rows = 0, begin = 0;
  while (begin < steps.sequence.size()) {
    std::size_t end = begin + 1;
    while (end < steps.sequence.size() && steps.sequence[end] == steps.sequence[begin]) ++end;
    Record row;
    row.add(fields::strategy_in_words, name);
    if (++rows > most_rows) {
      table.add(row.add(fields::which_steps, range_text(begin, steps.sequence.size()))
                    .add(fields::phase, "as before"));
      return;
    }
    const Step& kind = steps.kinds[static_cast<std::size_t>(steps.sequence[begin])];
    table.add(
        row.add(fields::which_steps, range_text(begin, end))
            .add(fields::phase, phase_label(kind.training))
            .add(fields::bucket_count, kind.job().groups.size())
            .add(fields::step_ms, in_ms(kind.metrics.step))
            .add(fields::communication_ms, in_ms(kind.metrics.communication))
            .add(fields::collectives, kind.metrics.collectives)
            .add(fields::total_ms, static_cast<double>(end - begin) * in_ms(kind.metrics.step)));
    begin = end;
  }
}

Record statistics_record(const DdpAverages& logged) {
  Record record;
  record.add(fields::avg_forward_compute_time_ns, logged.avg_forward_compute_time())
      .add(fields::avg_backward_compute_time_ns, logged.avg_backward_compute_time())
      .add(fields::avg_backward_comm_time_ns, logged.avg_backward_comm_time())
      .add(fields::avg_backward_compute_comm_overlap_time_ns,
           logged.avg_backward_compute_comm_overlap_time())
      .add(fields::samples, logged.samples_taken());
  return record;
}

}  // namespace

std::vector<ConsecutiveSteps> steps_of(const Comparison& run, int count) {
  std::vector<ConsecutiveSteps> steps;
  for (const Step& each : run.compared)
    steps.push_back(consecutive_steps(run.priced.model, each.training, count));
  return steps;
}

Table steps_table(const Comparison& run, const std::vector<ConsecutiveSteps>& steps) {
  Table table{{fields::strategy_in_words, fields::which_steps, fields::phase, fields::bucket_count,
               fields::step_ms, fields::communication_ms, fields::collectives, fields::total_ms}};
  for (Field& column : table.columns) column.look.absent = "";
  if (word_for_groups(run.named()) == "unit")
    table.columns[table.index_of(fields::bucket_count)].label = "units";
  table.title = fmt::format("{} consecutive steps", steps.front().sequence.size());
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const ConsecutiveSteps& each = steps[s];
    const std::string name = strategy_label(run.compared[s].training);
    add_stretches(table, name, each);
    table.add(Record()
                  .add(fields::strategy_in_words, name)
                  .add(fields::which_steps, "all")
                  .add(fields::step_ms,
                       1e3 * each.total_seconds() / static_cast<double>(each.sequence.size()))
                  .add(fields::total_ms, 1e3 * each.total_seconds()));
  }
  return table;
}

Record steps_record(const Comparison& run, const ConsecutiveSteps& steps, const Result& result) {
  List kinds, sequence;
  for (std::size_t kind = 0; kind < steps.kinds.size(); ++kind)
    kinds.emplace_back(
        Record()
            .add(fields::phase, phase_label(steps.kinds[kind].training))
            .add(fields::steps_of_kind, steps.counts[kind])
            .add(result_record(run.scenario, {&steps.kinds[kind], result.none, result.naive})));
  for (const std::int32_t kind : steps.sequence) sequence.emplace_back(kind);
  Record record;
  record.add(fields::step_count, steps.sequence.size())
      .add(fields::total_ms, 1e3 * steps.total_seconds())
      .add(fields::kinds, std::move(kinds))
      .add(fields::sequence, std::move(sequence));
  return record;
}

DdpAverages averages_of(const Step& step) {
  DdpAverages averages;
  if (const auto sample = ddp_statistics(step.rank())) averages.add(*sample);
  return averages;
}

std::string hooks_text(const Comparison& run) {
  const auto bucketed = [](const Step& step) {
    return step.training.strategy == Strategy::bucketed;
  };
  std::string text;
  for (std::size_t s = 0; s < run.compared.size(); ++s) {
    const Step& step = run.compared[s];
    const std::string name = strategy_label(step.training);
    const StepMetrics& metrics = step.metrics;
    if (!step.training.hooks.empty()) {
      Training bare = step.training;
      bare.hooks.clear();
      const Duration without = predict(run.priced.model, bare).metrics.step;
      text += fmt::format(
          "{}: with your own hooks the step takes {} ms, without them {} ms "
          "({:+.2f} ms)\n",
          name, ms_text(metrics.step), ms_text(without), in_ms(metrics.step - without));
    }
    if (step.training.comm_hook && bucketed(step))
      text += fmt::format(
          "{}: the comm hook hands {} to {} collectives; its own kernels take {} ms, and {} of "
          "memory "
          "besides the buckets\n",
          name, to_string(metrics.wire), metrics.collectives, ms_text(metrics.comm_hook),
          to_string(run.memories[s].most[program::Holds::hook]));
  }
  if (run.scenario.training.comm_hook &&
      !std::all_of(run.compared.begin(), run.compared.end(), bucketed))
    text += "comm_hook has an effect under bucketed only\n";
  return text;
}

Page statistics_page(const Comparison& run, const std::vector<ConsecutiveSteps>& steps) {
  Table table{{fields::strategy_in_words, fields::avg_forward_compute_time_ns,
               fields::avg_backward_compute_time_ns, fields::avg_backward_comm_time_ns,
               fields::avg_backward_compute_comm_overlap_time_ns, fields::communication_ms,
               fields::busy_overlap_ms}};
  table.title =
      "What DistributedDataParallel's logger would report (ms), which is of "
      "one iteration (the last micro-batch), beside ddpsim's figures; comm "
      "ms is of the whole step";
  for (std::size_t s = 0; s < run.compared.size(); ++s) {
    const Step& step = run.compared[s];
    const DdpAverages logged = steps.empty() ? averages_of(step) : steps[s].logged;
    if (logged.samples_taken() == 0) continue;
    table.add(statistics_record(logged)
                  .add(fields::strategy_in_words, strategy_label(step.training))
                  .add(fields::communication_ms, in_ms(step.metrics.communication))
                  .add(fields::busy_overlap_ms, in_ms(busy_overlap(step.rank()).beside)));
  }
  Page page;
  if (table.rows.empty())
    page.add(Paragraph{
        "DistributedDataParallel's logger runs for bucketed only, which is not compared here"});
  else
    page.add(std::move(table));
  return page;
}

FieldValue statistics_value(const DdpAverages& logged) {
  return logged.samples_taken() == 0 ? FieldValue() : FieldValue(statistics_record(logged));
}

}  // namespace ddpsim
