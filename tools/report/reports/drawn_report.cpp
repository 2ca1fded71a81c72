#include "tools/report/reports/drawn_report.hpp"

#include <fmt/format.h>

#include "model/base/statistics.hpp"
#include "tools/report/records/drawn_fields.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

std::string seeds_done(int done, int of) {
  return fmt::format("{} of {} seeds", done, of);
}

Record drawn_figures(const DrawnSteps& steps) {
  Record record;
  record.add(fields::drawn_step_p10_ms, quantile(steps.step_ms, 0.1))
      .add(fields::drawn_step_median_ms, quantile(steps.step_ms, 0.5))
      .add(fields::drawn_step_p90_ms, quantile(steps.step_ms, 0.9))
      .add(fields::drawn_step_p99_ms, quantile(steps.step_ms, 0.99))
      .add(fields::drawn_exposed_p10_ms, quantile(steps.exposed_ms, 0.1))
      .add(fields::drawn_exposed_median_ms, quantile(steps.exposed_ms, 0.5))
      .add(fields::drawn_exposed_p90_ms, quantile(steps.exposed_ms, 0.9))
      .add(fields::drawn_exposed_p99_ms, quantile(steps.exposed_ms, 0.99));
  return record;
}

Record seeds_record(const DrawnSteps& steps) {
  Record record;
  record.add(fields::seed_count, steps.count()).add(drawn_figures(steps));
  return record;
}

Table seeds_table(const Comparison& run, const std::vector<DrawnSteps>& drawn) {
  Table table;
  table.columns.push_back(fields::strategy_in_words);
  for (const Field* field : fields::of_drawn_steps) table.columns.push_back(*field);
  const RankSpread spread = rank_spread(run.scenario.cluster, run.scenario.workload.step_spread);
  table.title = fmt::format("{} step{}, the ranks' computing times drawn anew in each ({:.3g} %)",
                            drawn.front().count(), drawn.front().count() == 1 ? "" : "s",
                            100 * spread.changing);
  for (std::size_t s = 0; s < drawn.size(); ++s)
    table.add(drawn_figures(drawn[s]).add(fields::strategy_in_words,
                                          strategy_label(run.compared[s].training)));
  if (drawn.front().count() < 100)
    table.notes = fmt::format(
        "the 99th percentile of {} steps is little more than the longest of "
        "them: take 1000 seeds or more",
        drawn.front().count());
  return table;
}

}  // namespace ddpsim
