// A fit to measured rows is a factor on the laws' times. The rows say how far the laws are off on
// one device, for one model in one number format; of another nobody knows. A setting of the command
// line changes the scenario and leaves its rows as they are: they are read from the file alone.

#include "tools/study/carried_fit.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "model/cost/interference.hpp"
#include "tools/study/names.hpp"
#include "tools/study/step_facts.hpp"

namespace ddpsim {
namespace {

const MeasuredRow& first_of(const Scenario& scenario, const FittedRows& fitted) {
  return scenario.measured->rows[fitted.rows.front()];
}

/// Is the scenario what its fitted row was measured in, as it stands in the file?
bool is_as_measured(const Scenario& scenario, const FittedRows& fitted) {
  return !scenario.is_changed && first_of(scenario, fitted).set.empty();
}

/// Collects differences, each thing once.
class Differences {
 public:
  void add(const std::vector<DifferentFact>& differences) {
    for (const DifferentFact& each : differences) add(each.measured, each.here);
  }

  std::vector<OtherThanMeasured> found() const {
    std::vector<OtherThanMeasured> others;
    for (const Found& each : found_)
      others.push_back({each.what, each.measured, enumerated(each.here)});
    return others;
  }

 private:
  struct Found {
    std::string what, measured;
    std::vector<std::string> here;
  };

  void add(const Fact& was, const Fact& is) {
    auto found = std::ranges::find(found_, was.what, &Found::what);
    if (found == found_.end()) found = found_.insert(found, {was.what, was.text, {}});
    const std::string here = is.text == was.text ? "with other figures" : is.text;
    if (found->measured == was.text && std::ranges::find(found->here, here) == found->here.end())
      found->here.push_back(here);
  }

  std::vector<Found> found_;
};

/// What the fitted rows of one strategy are of.
struct FittedFacts {
  StepFacts facts;
  bool communicates;
};

FittedFacts facts_of(const Scenario& scenario, const FittedRows& fitted,
                     const std::vector<Setting>& settings = {}) {
  StepFacts facts = step_facts(scenario_of(first_of(scenario, fitted), scenario, settings));
  const bool communicates = fitted.strategy != Strategy::none && facts.communicates;
  return {std::move(facts), communicates};
}

std::string note_of(const std::vector<std::string>& measured, std::string_view others) {
  return fmt::format(
      "the measured rows are of {}{}: what is fitted to them may not hold here, and how far such "
      "predictions usually are off is not quoted; --laws-only leaves the rows out",
      enumerated(measured), others);
}

}  // namespace

std::vector<OtherThanMeasured> other_than_measured(const Scenario& scenario) {
  if (!scenario.measured) return {};
  Differences differing;
  std::optional<StepFacts> here;
  for (const FittedRows& fitted : fitted_rows(scenario, scenario.measured->calibrate_on)) {
    if (is_as_measured(scenario, fitted)) continue;
    if (!here) here = step_facts(scenario);
    const FittedFacts measured = facts_of(scenario, fitted);
    differing.add(differences(measured.facts, *here, measured.communicates));
  }
  return differing.found();
}

std::vector<OtherThanMeasured> rows_other_than_measured(const Scenario& scenario,
                                                        const std::vector<FittedRows>& fitted,
                                                        const std::vector<Setting>& settings) {
  std::vector<FittedFacts> measured;
  for (const FittedRows& each : fitted) measured.push_back(facts_of(scenario, each, settings));
  Differences differing;
  std::map<decltype(MeasuredRow::set), StepFacts> known;
  for (const MeasuredRow& row : scenario.measured->rows) {
    auto here = known.find(row.set);
    if (here == known.end())
      here = known.emplace(row.set, step_facts(scenario_of(row, scenario, settings))).first;
    for (const FittedFacts& each : measured)
      differing.add(differences(each.facts, here->second,
                                each.communicates && row.strategy != Strategy::none));
  }
  return differing.found();
}

std::vector<OtherThanMeasured> rows_changed_by(const Scenario& scenario,
                                               const std::vector<Setting>& settings) {
  if (settings.empty()) return {};
  Differences differing;
  std::set<decltype(MeasuredRow::set)> known[2];  // [does the row communicate?]
  try {
    for (const MeasuredRow& row : scenario.measured->rows) {
      const bool sends = row.strategy != Strategy::none;
      if (!known[sends].insert(row.set).second) continue;
      const StepFacts file = step_facts(scenario_of(row, scenario)),
                      here = step_facts(scenario_of(row, scenario, settings));
      differing.add(differences(file, here, sends && (file.communicates || here.communicates)));
    }
  } catch (const InputError&) {
    return {};
  }
  return differing.found();
}

int measured_ranks(const Scenario& scenario) {
  if (!scenario.measured) return scenario.cluster.ranks();
  const auto fitted = fitted_rows(scenario, scenario.measured->calibrate_on);
  if (fitted.empty() || is_as_measured(scenario, fitted.front())) return scenario.cluster.ranks();
  return scenario_of(first_of(scenario, fitted.front()), scenario).cluster.ranks();
}

bool fits_interference_over_nics(const Scenario& scenario) {
  if (!scenario.measured) return false;
  const auto fitted = fitted_rows(scenario, scenario.measured->calibrate_on);
  const auto overlap = std::ranges::find(fitted, Strategy::overlap, &FittedRows::strategy);
  if (overlap == fitted.end()) return false;
  return over_nics(is_as_measured(scenario, *overlap)
                       ? scenario.cluster
                       : scenario_of(first_of(scenario, *overlap), scenario).cluster);
}

std::string carried_fit_note(const std::vector<OtherThanMeasured>& others) {
  if (others.empty()) return "";
  std::vector<std::string> measured;
  for (const OtherThanMeasured& other : others)
    measured.push_back(fmt::format("{} {} (here {})", other.what, other.measured, other.here));
  return note_of(measured, "");
}

std::string changed_rows_note(const std::vector<OtherThanMeasured>& others) {
  if (others.empty()) return "";
  std::vector<std::string> changed;
  for (const OtherThanMeasured& other : others)
    changed.push_back(
        fmt::format("{} {} (the file says {})", other.what, other.here, other.measured));
  return fmt::format(
      "the rows are taken as measured with {}; run and tune with the same settings take them as "
      "the file says",
      enumerated(changed));
}

std::string carried_fit_note_at_point(const std::vector<OtherThanMeasured>& others) {
  if (others.empty()) return "";
  std::vector<std::string> measured;
  for (const OtherThanMeasured& other : others)
    measured.push_back(fmt::format("{} {}", other.what, other.measured));
  return note_of(measured, others.size() == 1 ? ", and here is another" : ", and here are others");
}

}  // namespace ddpsim
