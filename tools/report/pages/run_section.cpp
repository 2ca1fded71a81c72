#include "tools/report/pages/run_section.hpp"

#include <algorithm>
#include <tuple>

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
#include "tools/report/reports/unit_report.hpp"
#include "tools/report/reports/why_report.hpp"
#include "tools/study/names.hpp"

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

/// Says of a shortest step that waits for its batches that no strategy makes it shorter.
std::string waiting_text(const Comparison& run, const Result& best) {
  const StepMetrics& metrics = best.step->metrics;
  std::vector<std::string> alike;
  for (const Result& result : run.results()) {
    const Step& step = *result.step;
    if (&step == best.step || step.training.strategy == Strategy::none ||
        step.metrics.step != metrics.step)
      continue;
    alike.push_back(strategy_label(step.training));
  }
  std::string text = fmt::format(
      " It waits {} of that for its batches, of which a node makes those of its ranks in {} "
      "(training.input){}.",
      to_string(metrics.input_wait), to_string(least_step(run.scenario)),
      alike.empty() ? ""
                    : fmt::format(", and {} {} as long", enumerated(alike),
                                  alike.size() == 1 ? "takes" : "take"));
  if (metrics.communication > Duration::zero())
    text += fmt::format(" Without communication it would take as long (comm share {:.1f} %).",
                        100 * communication_share(metrics.step, best.none->step));
  return text + fmt::format(
                    " A quicker input, or more cores for the input, makes the step shorter, down "
                    "to {}.",
                    to_string(metrics.working()));
}

/// How much of the communication hides, and what is exposed of it.
std::string hiding_text(const Result& best) {
  const StepMetrics &metrics = best.step->metrics, &none = *best.none;
  const double share = 100 * communication_share(metrics.step, none.step);
  return fmt::format(
      " {:.0f} % of its {} of communication hides behind computation; {} is exposed, {}.",
      100 * overlap_ratio(metrics, none), to_string(metrics.communication),
      to_string(std::max(Duration{}, exposed(metrics, none))),
      none.input_wait > Duration::zero()
          ? fmt::format("but without communication the step would be {:.1f} % shorter, as it would "
                        "wait for its batches (training.input)",
                        share)
          : fmt::format("{:.1f} % of the step", share));
}

/// The shortest step that averages gradients and fits, or of those that do not fit; null: none
/// averages.
struct Shortest {
  const Result* result = nullptr;
  bool none_fits = false, some_do_not = false;
};

Shortest shortest_of(const Comparison& run, const std::vector<Result>& results) {
  const auto is_unfit = [&](const Result& result) {
    return outcome_of(run.scenario, result).fits == std::optional(false);
  };
  // Steps that wait for their batches take as long: the one that waits longest is named.
  const auto key = [](const Result& result, bool unfit) {
    return std::tuple(unfit, result.step->metrics.step, result.step->metrics.working());
  };
  Shortest found;
  for (const Result& result : results) {
    if (result.step->training.strategy == Strategy::none) continue;
    const bool unfit = is_unfit(result);
    found.some_do_not = found.some_do_not || unfit;
    if (found.result != nullptr && key(result, unfit) >= key(*found.result, found.none_fits))
      continue;
    found.result = &result;
    found.none_fits = unfit;
  }
  return found;
}

/// How far predictions such as the verdict's step were off; "": that is not known, or it has no
/// band beside others that have.
std::string verdict_accuracy(const Comparison& run) {
  const std::string of_all = accuracy_sentences(run);
  if (of_all.empty()) return "";
  const std::vector<Result> results = run.results();
  const Result* best = shortest_of(run, results).result;
  if (best == nullptr) return of_all;
  const auto& accuracy = run.knowledge.about(best->step->training.strategy);
  return accuracy ? sentence(*accuracy) : no_band_text({strategy_label(best->step->training)});
}

}  // namespace

std::string run_verdict(const Comparison& run) {
  const std::vector<Result> results = run.results();
  const auto [best, none_fits, some_do_not] = shortest_of(run, results);
  if (best == nullptr)
    return fmt::format("A step without communication takes {}.",
                       to_string(results.front().step->metrics.step));
  const StepMetrics& metrics = best->step->metrics;
  const int ranks = run.scenario.cluster.ranks();
  const bool waits = metrics.input_wait > Duration::zero();
  const bool beats_naive = !waits || best->naive->step > metrics.step;
  std::string text = fmt::format(
      "The shortest step{} on {} is {}, under {}{}.",
      some_do_not && !none_fits ? " that fits the device's memory" : "", ranks_text(ranks),
      to_string(metrics.step), strategy_label(best->step->training),
      ranks > 1 && beats_naive ? fmt::format(": {:.2f} times as fast as naive", best->speedup())
                               : "");
  if (none_fits)
    text += " It does not fit the device's memory, and no strategy compared here does.";
  if (waits) return text + waiting_text(run, *best);
  if (metrics.communication == Duration::zero()) return text;
  text += hiding_text(*best);
  if (const auto saved = saved_by_sharing(*best->step, *best->none))
    text += " But " + sharing_text(*best->step, *best->none, *saved) + ".";
  return text;
}

ReportSection run_section(const Comparison& run, const MoreOfSteps& more, const std::string& id,
                          const ScoreSettings& settings, std::vector<std::string> notes) {
  ReportSection section;
  section.title = run.scenario.name;
  const std::vector<Result> results = run.results();
  const Result& chief = chief_of(results, run.scenario.training.strategy);
  section.headline = headline_of(outcome_of(run.scenario, chief),
                                 fmt::format("{} on {}", strategy_label(chief.step->training),
                                             ranks_text(run.scenario.cluster.ranks())),
                                 run.scenario.cluster.device.memory);
  section.verdict = run_verdict(run);
  TimelinePicture drawn = timeline_picture(run.scenario, run.named(), id);
  section.page.add(
      Picture{"Timeline", std::move(drawn.svg), std::move(drawn.tasks),
              word_for_groups(run.named()) == "unit"
                  ? "Rank 0 of one step, every strategy on one scale."
                  : "Rank 0 of one step, every strategy on one scale. A bucket's bar shows how it "
                    "fills, waits, and is reduced."});
  const std::string how_far = verdict_accuracy(run);
  if (!how_far.empty()) section.verdict += " " + how_far;
  MoreOfSteps shown = more;  // but for what is folded
  shown.request.why = false;
  section.page.add(run_page(run, shown));
  if (const std::string said = accuracy_sentences(run); !said.empty() && how_far == said)
    for (auto& block : section.page.blocks)  // the verdict has said the first sentences
      if (auto* paragraph = std::get_if<Paragraph>(&block))
        if (paragraph->text.starts_with(said)) paragraph->text = bands_text(run);
  if (are_of_rows(run.scenario, settings.set))
    if (const auto score = score_scenario("measured rows", run.scenario, settings))
      if (auto picture = measured_picture({*score})) {
        section.page.add(std::move(*picture));
        section.folded.emplace_back("The measured rows in figures", page_of(rows_table(*score)));
      }
  const bool own_curves = more.curves.empty();
  const std::vector<ScalingCurve> curves =
      own_curves ? scaling_curves(run.scenario, run.scenario.compare, run.priced.fit) : more.curves;
  add_scaling_pictures(section.page, curves, run.knowledge);
  add_each_once(notes, scaling_notes(run, curves));
  if (own_curves && !curves.empty())
    section.folded.emplace_back("The steps on other numbers of ranks in figures",
                                page_of(scaling_table(curves)));
  add_seeds_picture(section.page, run, more.drawn);
  if (auto picture = why_picture(run.scenario, run.named())) section.page.add(std::move(*picture));
  section.add_notes(notes);
  if (!more.request.why)
    section.folded.emplace_back(
        fmt::format("What each step loses, and what exposes each {}, in figures",
                    word_for_groups(run.named())),
        why_page(run, losses_of(run)));
  return section;
}

}  // namespace ddpsim
