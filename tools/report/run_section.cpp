#include "tools/report/run_section.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/picture/timeline_picture.hpp"
#include "tools/report/band_report.hpp"
#include "tools/report/loss_report.hpp"
#include "tools/report/measured_picture.hpp"
#include "tools/report/scaling_section.hpp"
#include "tools/report/score_report.hpp"
#include "tools/report/throughput_report.hpp"
#include "tools/report/why_picture.hpp"
#include "tools/report/why_report.hpp"

namespace ddpsim {

namespace {

/// Are the measured rows of what was predicted? Settings of how buckets are made change neither
/// the workload nor the cluster that was measured.
bool are_of_rows(const Scenario& scenario, const std::vector<Setting>& settings) {
  return scenario.measured && std::all_of(settings.begin(), settings.end(), [](const auto& each) {
           return each.first.starts_with("training.") || each.first == "compare";
         });
}

}  // namespace

std::string run_verdict(const Comparison& run) {
  const std::vector<Result> results = run.results();
  const Result* best = nullptr;
  for (const Result& result : results)
    if (result.step->training.strategy != Strategy::none &&
        (best == nullptr || result.step->metrics.step < best->step->metrics.step))
      best = &result;
  if (best == nullptr)
    return fmt::format("A step without communication takes {}.",
                       to_string(results.front().step->metrics.step));
  const StepMetrics& metrics = best->step->metrics;
  const int ranks = run.scenario.cluster.ranks();
  std::string text =
      fmt::format("The shortest step on {} rank{} is {}, under {}: {:.2f} times as fast as naive.",
                  ranks, ranks == 1 ? "" : "s", to_string(metrics.step),
                  strategy_label(best->step->training), best->speedup());
  if (metrics.communication == Duration::zero()) return text;
  return text + fmt::format(
                    " {:.0f} % of its {} of communication hides behind computation; {} is exposed, "
                    "{:.1f} % of the step.",
                    100 * overlap_ratio(metrics, *best->none), to_string(metrics.communication),
                    to_string(std::max(Duration{}, exposed(metrics, *best->none))),
                    100 * std::max(0.0, in_seconds(exposed(metrics, *best->none))) /
                        in_seconds(metrics.step));
}

ReportSection run_section(const Comparison& run, const MoreOfSteps& more, const std::string& id,
                          const ScoreSettings& settings) {
  ReportSection section;
  section.title = run.scenario.name;
  section.verdict = run_verdict(run);
  TimelinePicture drawn = timeline_picture(run.scenario, run.named(), id);
  section.page.add(
      Picture{"Timeline", std::move(drawn.svg), std::move(drawn.tasks),
              "Rank 0 of one step, every strategy on one scale. A bucket's bar shows how it fills, "
              "waits, and is reduced."});
  const std::optional<KnownAccuracy>& accuracy = run.knowledge.accuracy;
  if (accuracy) section.verdict += " " + sentence(*accuracy);
  section.page.add(run_page(run, more));
  if (accuracy)  // the verdict has said the first sentences already
    for (auto& block : section.page.blocks)
      if (auto* paragraph = std::get_if<Paragraph>(&block))
        if (paragraph->text.starts_with(sentence(*accuracy))) paragraph->text = bands_text(run);
  if (are_of_rows(run.scenario, settings.set))
    if (const auto score = score_scenario("measured rows", run.scenario, settings))
      if (auto picture = measured_picture({*score})) {
        section.page.add(std::move(*picture));
        section.page.add(rows_table(*score));
      }
  const bool own_curves = more.curves.empty();
  const std::vector<ScalingCurve> curves =
      own_curves ? scaling_curves(run.scenario, run.scenario.compare, run.priced.fit) : more.curves;
  add_scaling_pictures(section.page, curves, accuracy);
  if (own_curves && !curves.empty()) section.page.add(scaling_table(curves));
  if (auto picture = why_picture(run.scenario, run.named())) section.page.add(std::move(*picture));
  if (!more.request.why) section.page.add(why_page(run, losses_of(run)));
  return section;
}

}  // namespace ddpsim
