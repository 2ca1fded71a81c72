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

double end_ms(double factor, const StepMetrics& step, Duration least, Duration more = {}) {
  if (factor * in_ms(step.working()) < in_ms(least)) return in_ms(least) + factor * in_ms(more);
  return factor * in_ms(step.working() + more);
}

}  // namespace

Record band_record(const Knowledge& knowledge, const StepMetrics& step, Duration least,
                   Duration more) {
  const auto end = [&](double factor) {
    return knowledge.accuracy ? FieldValue(end_ms(factor, step, least, more)) : FieldValue();
  };
  const Band band = knowledge.accuracy ? knowledge.accuracy->band : Band{};
  return Record()
      .add(fields::band_low_ms, end(band.low))
      .add(fields::band_high_ms, end(band.high))
      .add(fields::known_from, knowledge_text(knowledge.from));
}

namespace {

/// Hosts of one kind differ by a third in what a launch takes (docs/devices.md), which a narrower
/// band of steps that wait for their launches does not hold, where no step of this host was
/// measured. "": there is none.
std::string launches_text(const Comparison& run) {
  constexpr double hosts_differ = 1.0 / 3;
  const FittedOn from = run.knowledge.from;
  const bool of_any_host = from == FittedOn::laws || from == FittedOn::described;
  if (!of_any_host || 2 * run.knowledge.accuracy->band.half_width() >= hosts_differ) return "";
  std::vector<std::string> waiting;
  for (const NamedStep& each : run.named())
    if (each.step->metrics.bound == Bound::launch) waiting.push_back(each.name);
  if (waiting.empty()) return "";
  return fmt::format(
      " Launches bound {}: what they cost differs by a third between hosts of one kind, and the "
      "{} no wider for it.",
      enumerated(waiting), waiting.size() == 1 ? "band is" : "bands are");
}

}  // namespace

std::string bands_text(const Comparison& run) {
  if (!run.knowledge.accuracy) return "";
  const Band& band = run.knowledge.accuracy->band;
  const Duration least = least_step(run.scenario);
  std::string text;
  for (const NamedStep& each : run.named()) {
    const StepMetrics& step = each.step->metrics;
    text +=
        fmt::format("{}{} {:.2f} to {:.2f} ms", text.empty() ? "In proportion, steps take: " : "; ",
                    each.name, end_ms(band.low, step, least), end_ms(band.high, step, least));
  }
  return text + "." + launches_text(run);
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
