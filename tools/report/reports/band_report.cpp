#include "tools/report/reports/band_report.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/report/records/step_fields.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

Duration least_step(const Scenario& scenario) {
  return scenario.training.least_step(scenario.cluster.ranks_per_node.largest());
}

namespace {

struct Ends {
  double low_ms, high_ms;
};

/// `without`: the step without communication, and without its wait for batches.
Ends ends_of(const KnownAccuracy& accuracy, const StepMetrics& step, Duration without,
             Duration least, Duration more = {}) {
  const auto end_ms = [&](double factor, Duration working) {
    if (factor * in_ms(working) < in_ms(least)) return in_ms(least) + factor * in_ms(more);
    return factor * in_ms(working + more);
  };
  const StepRange on_hosts =
      accuracy.host ? range_of(*accuracy.host, step.working(), without, step.communication)
                    : StepRange{step.working(), step.working()};
  return {end_ms(accuracy.band.low, on_hosts.low), end_ms(accuracy.band.high, on_hosts.high)};
}

}  // namespace

Record band_record(const Knowledge& knowledge, Strategy strategy, const StepMetrics& step,
                   Duration without, Duration least, Duration more) {
  Record record;
  if (const auto& accuracy = knowledge.about(strategy)) {
    const Ends ends = ends_of(*accuracy, step, without, least, more);
    record.add(fields::band_low_ms, ends.low_ms).add(fields::band_high_ms, ends.high_ms);
  } else {
    record.add(fields::band_low_ms, FieldValue()).add(fields::band_high_ms, FieldValue());
  }
  return record.add(fields::known_from, knowledge_text(knowledge.from));
}

namespace {

/// Hosts of one kind differ by a third in what a launch takes (docs/devices.md), which a narrower
/// band of steps that wait for their launches does not hold, where no step of this host was
/// measured. "": there is none.
std::string launches_text(const Comparison& run) {
  constexpr double hosts_differ = 1.0 / 3;
  const FittedOn from = run.knowledge.from;
  const bool of_any_host = from == FittedOn::laws || from == FittedOn::described;
  if (!of_any_host) return "";
  std::vector<std::string> waiting;
  for (const NamedStep& each : run.named()) {
    const auto& accuracy = run.knowledge.about(each.step->training.strategy);
    if (accuracy && 2 * accuracy->band.half_width() < hosts_differ &&
        each.step->metrics.bound == Bound::launch)
      waiting.push_back(each.name);
  }
  if (waiting.empty()) return "";
  return fmt::format(
      " Launches bound {}: what they cost differs by a third between hosts of one kind, and the "
      "{} no wider for it.",
      enumerated(waiting), waiting.size() == 1 ? "band is" : "bands are");
}

}  // namespace

std::string bands_text(const Comparison& run) {
  const Knowledge& knowledge = run.knowledge;
  if (!knowledge.accuracy && !knowledge.accuracy_of_shards) return "";
  const Duration least = least_step(run.scenario), without = run.none.metrics.working();
  const auto has_host = [](const std::optional<KnownAccuracy>& each) { return each && each->host; };
  const bool of_all_hosts = has_host(knowledge.accuracy) || has_host(knowledge.accuracy_of_shards);
  std::string text = of_all_hosts ? "Steps take: " : "In proportion, steps take: ";
  std::string_view before;
  std::vector<std::string> unknown;
  for (const NamedStep& each : run.named()) {
    const auto& accuracy = knowledge.about(each.step->training.strategy);
    if (!accuracy) {
      unknown.push_back(each.name);
      continue;
    }
    const Ends ends = ends_of(*accuracy, each.step->metrics, without, least);
    text += fmt::format("{}{} {:.2f} to {:.2f} ms", before, each.name, ends.low_ms, ends.high_ms);
    before = "; ";
  }
  text = before.empty() ? "" : text + "." + launches_text(run);
  if (!unknown.empty()) text += (text.empty() ? "" : " ") + no_band_text(unknown, !before.empty());
  return text;
}

std::string accuracy_sentences(const Comparison& run) {
  std::vector<Strategy> strategies;
  for (const Step& step : run.compared) strategies.push_back(step.training.strategy);
  return sentences(run.knowledge, strategies);
}

std::string no_band_text(const std::vector<std::string>& names, bool beside_others) {
  if (names.empty()) return "";
  return fmt::format("There is no band for {}: how far {}predictions were off is not known.",
                     enumerated(names), beside_others ? "these " : "such ");
}

std::string saving_text(const Knowledge& knowledge, double saving) {
  if (!knowledge.accuracy || saving >= knowledge.accuracy->band.half_width()) return "";
  return fmt::format(
      "The saving of {:.1f} % is smaller than how far such predictions were "
      "off ({:.1f} % to either side of the middle, for 9 in 10). The two "
      "steps differ in their buckets alone, so they share most of that "
      "error, but how much they share was not measured: time both.",
      100 * saving, 100 * knowledge.accuracy->band.half_width());
}

}  // namespace ddpsim
