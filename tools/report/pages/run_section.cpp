#include "tools/report/pages/run_section.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/picture/timeline_picture.hpp"
#include "tools/report/pages/drawn_section.hpp"
#include "tools/report/pages/measured_picture.hpp"
#include "tools/report/pages/scaling_section.hpp"
#include "tools/report/pages/why_picture.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/loss_report.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/report/reports/score_report.hpp"
#include "tools/report/reports/shared_update.hpp"
#include "tools/report/reports/throughput_report.hpp"
#include "tools/report/reports/why_report.hpp"

namespace ddpsim {

namespace {

Page page_of(Table table) {
  Page page;
  page.add(std::move(table));
  return page;
}

std::string ranks_text(int ranks) {
  return ranks == 1 ? "one rank" : fmt::format("{} ranks", ranks);
}

/// Are the measured rows of what was predicted? Settings of how buckets are made change neither
/// the workload nor the cluster that was measured.
bool are_of_rows(const Scenario& scenario, const std::vector<Setting>& settings) {
  return scenario.measured && std::all_of(settings.begin(), settings.end(), [](const auto& each) {
           return each.key.starts_with("training.") || each.key == "compare";
         });
}

}  // namespace

std::string run_verdict(const Comparison& run) {
  const std::vector<Result> results = run.results();
  const auto is_unfit = [&](const Result& result) {
    return outcome_of(run.scenario, result).fits == std::optional(false);
  };
  const Result* best = nullptr;
  bool none_fits = false, some_do_not = false;
  for (const Result& result : results) {
    if (result.step->training.strategy == Strategy::none) continue;
    const bool unfit = is_unfit(result);
    some_do_not = some_do_not || unfit;
    if (best != nullptr &&
        (unfit > none_fits ||
         (unfit == none_fits && result.step->metrics.step >= best->step->metrics.step)))
      continue;
    best = &result;
    none_fits = unfit;
  }
  if (best == nullptr)
    return fmt::format("A step without communication takes {}.",
                       to_string(results.front().step->metrics.step));
  const StepMetrics& metrics = best->step->metrics;
  const int ranks = run.scenario.cluster.ranks();
  std::string text =
      fmt::format("The shortest step{} on {} is {}, under {}{}.",
                  some_do_not && !none_fits ? " that fits the device's memory" : "",
                  ranks_text(ranks), to_string(metrics.step), strategy_label(best->step->training),
                  ranks > 1 ? fmt::format(": {:.2f} times as fast as naive", best->speedup()) : "");
  if (none_fits)
    text += " It does not fit the device's memory, and no strategy compared here does.";
  if (metrics.communication == Duration::zero()) return text;
  text += fmt::format(
      " {:.0f} % of its {} of communication hides behind computation; {} is exposed, "
      "{:.1f} % of the step.",
      100 * overlap_ratio(metrics, *best->none), to_string(metrics.communication),
      to_string(std::max(Duration{}, exposed(metrics, *best->none))),
      100 * std::max(0.0, in_seconds(exposed(metrics, *best->none))) / in_seconds(metrics.step));
  if (const auto saved = saved_by_sharing(*best->step, *best->none))
    text += " But " + sharing_text(*best->step, *best->none, *saved) + ".";
  return text;
}

ReportSection run_section(const Comparison& run, const MoreOfSteps& more, const std::string& id,
                          const ScoreSettings& settings, std::vector<std::string> notes) {
  ReportSection section;
  section.title = run.scenario.name;
  const std::vector<Result> results = run.results();
  const Result& chief = chief_of(results);
  section.headline = headline_of(outcome_of(run.scenario, chief),
                                 fmt::format("{} on {}", strategy_label(chief.step->training),
                                             ranks_text(run.scenario.cluster.ranks())),
                                 run.scenario.cluster.device.memory);
  section.verdict = run_verdict(run);
  TimelinePicture drawn = timeline_picture(run.scenario, run.named(), id);
  section.page.add(
      Picture{"Timeline", std::move(drawn.svg), std::move(drawn.tasks),
              "Rank 0 of one step, every strategy on one scale. A bucket's bar shows how it fills, "
              "waits, and is reduced."});
  const std::optional<KnownAccuracy>& accuracy = run.knowledge.accuracy;
  if (accuracy) section.verdict += " " + sentence(*accuracy);
  MoreOfSteps shown = more;  // but for what is folded
  shown.request.why = false;
  section.page.add(run_page(run, shown));
  if (accuracy)  // the verdict has said the first sentences already
    for (auto& block : section.page.blocks)
      if (auto* paragraph = std::get_if<Paragraph>(&block))
        if (paragraph->text.starts_with(sentence(*accuracy))) paragraph->text = bands_text(run);
  if (are_of_rows(run.scenario, settings.set))
    if (const auto score = score_scenario("measured rows", run.scenario, settings))
      if (auto picture = measured_picture({*score})) {
        section.page.add(std::move(*picture));
        section.folded.emplace_back("The measured rows in figures", page_of(rows_table(*score)));
      }
  const bool own_curves = more.curves.empty();
  const std::vector<ScalingCurve> curves =
      own_curves ? scaling_curves(run.scenario, run.scenario.compare, run.priced.fit) : more.curves;
  add_scaling_pictures(section.page, curves, accuracy);
  add_each_once(notes, scaling_notes(run, curves));
  if (own_curves && !curves.empty())
    section.folded.emplace_back("The steps on other numbers of ranks in figures",
                                page_of(scaling_table(curves)));
  add_seeds_picture(section.page, run, more.drawn);
  if (auto picture = why_picture(run.scenario, run.named())) section.page.add(std::move(*picture));
  std::string noted;
  for (const std::string& note : notes) noted += fmt::format("note: {}\n", note);
  section.page.add(Paragraph{noted});
  if (!more.request.why)
    section.folded.emplace_back("What each step loses, and what exposes each bucket, in figures",
                                why_page(run, losses_of(run)));
  return section;
}

}  // namespace ddpsim
