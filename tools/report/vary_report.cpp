#include "tools/report/vary_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/predict/step_sequence.hpp"
#include "tools/report/cluster_report.hpp"
#include "tools/report/results.hpp"
#include "tools/report/throughput_report.hpp"
#include "tools/report/vary_fields.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

/// What a step takes in the long run: post_local_sgd averages models in one of several.
Duration lasting(const VariedRun& varied, const Step& step) {
  const auto averaged = averaged_step(varied.run.priced.model, step);
  return averaged ? averaged->mean : step.metrics.step;
}

/// The step of one strategy; null: this run has none.
const Step* step_under(const VariedRun& varied, Strategy strategy) {
  for (const Step& step : varied.run.compared)
    if (step.training.strategy == strategy) return &step;
  return nullptr;
}

/// The step that is the shortest of those that average anything.
struct Shortest {
  const VariedRun* run = nullptr;
  const Step* step = nullptr;
  Duration lasting{};

  void consider(const VariedRun& varied, const Step& candidate, Duration lasts) {
    const bool communicates = candidate.training.strategy != Strategy::none &&
                              (candidate.training.strategy != Strategy::bucketed ||
                               candidate.training.comm_hook.kind != CommHookKind::noop);
    if (communicates && (step == nullptr || lasts < lasting)) *this = {&varied, &candidate, lasts};
  }
};

Record row_record(const VariedRun& varied, const Step& step, const VariedRun& first,
                  Duration lasts) {
  const StepMetrics& metrics = step.metrics;
  const Step* same = step_under(first, step.training.strategy);
  FieldValue against;
  if (same != nullptr) against = in_seconds(lasts) / in_seconds(lasting(first, *same)) - 1;
  Record row;
  row.add(fields::combination, short_label(varied.settings))
      .add(fields::strategy, name_of(step.training.strategy))
      .add(fields::step_ms, in_ms(lasts))
      .add(fields::against_first, against)
      .add(fields::exposed_ms, in_ms(lasts - varied.run.none.metrics.step))
      .add(fields::communication_ms, in_ms(metrics.communication))
      .add(fields::collectives, metrics.collectives)
      .add(fields::wire_bytes, metrics.wire.count)
      .add(fields::comm_hook_ms, in_ms(metrics.comm_hook))
      .add(fields::comm_hook_memory_bytes, step.schedule.comm_hook_memory.count)
      .add(fields::bound, name_of(metrics.bound));
  return row;
}

}  // namespace

Page varied_page(const std::vector<VariedRun>& runs) {
  const Scenario& scenario = runs.front().run.scenario;
  Page page;
  const bool others = std::any_of(runs.begin(), runs.end(), [&](const VariedRun& varied) {
    return cluster_text(varied.run.scenario) != cluster_text(scenario);
  });
  page.add(Paragraph{fmt::format("{}\n{}\n{}{}", scenario.name, scenario.workload.name,
                                 others ? "the first: " : "", cluster_text(scenario))});
  Table table{{fields::combination, fields::strategy, fields::step_ms, fields::against_first,
               fields::exposed_ms, fields::communication_ms, fields::collectives,
               fields::wire_bytes, fields::comm_hook_ms, fields::comm_hook_memory_bytes,
               fields::bound}};
  Shortest shortest;
  bool averages = false;
  std::size_t strategies = 0;
  for (const VariedRun& varied : runs)
    strategies = std::max(strategies, varied.run.compared.size());
  for (std::size_t s = 0; s < strategies; ++s)
    for (const VariedRun& varied : runs) {
      if (s >= varied.run.compared.size()) continue;  // `compare` itself varies
      const Step& step = varied.run.compared[s];
      const Duration lasts = lasting(varied, step);
      averages = averages || lasts != step.metrics.step;
      table.add(row_record(varied, step, runs.front(), lasts));
      shortest.consider(varied, step, lasts);
    }
  page.add(std::move(table));
  std::string notes =
      "exposed: step minus the same without communication; wire: handed to collectives by each "
      "rank; hook: its own kernels\n";
  if (averages)
    notes +=
        "post_local_sgd: step and exposed are means over a period, in which models are averaged "
        "once; the rest is of a step between\n";
  if (shortest.step != nullptr)
    notes += fmt::format("shortest: {}, {}: {:.2f} ms\n", short_label(shortest.run->settings),
                         strategy_label(shortest.step->training), in_ms(shortest.lasting));
  page.add(Paragraph{notes});
  return page;
}

List varied_records(const std::vector<VariedRun>& runs) {
  List all;
  for (const VariedRun& varied : runs) {
    List results;
    for (const Result& result : varied.run.results())
      results.emplace_back(result_record(varied.run.scenario, result)
                               .add(throughput_record(varied.run.scenario, result)));
    all.emplace_back(
        run_record(varied.run.scenario, std::move(results)).add(fields::set, varied.settings));
  }
  return all;
}

Table varied_table(const std::vector<VariedRun>& runs) {
  Table table{run_columns()};
  table.columns.push_back(fields::set);
  for (const VariedRun& varied : runs)
    for (const Result& result : varied.run.results())
      table.add(run_row(varied.run.scenario, result).add(fields::set, varied.settings));
  return table;
}

}  // namespace ddpsim
