#include "tools/report/reports/said_notes.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tools/report/reports/cluster_notes.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/run_report.hpp"
#include "tools/report/reports/tune_report.hpp"
#include "tools/study/file_notes.hpp"
#include "tools/study/memory_advice.hpp"

namespace ddpsim {

void add_each_once(std::vector<std::string>& notes, std::vector<std::string> more) {
  for (std::string& line : more)
    if (std::find(notes.begin(), notes.end(), line) == notes.end())
      notes.push_back(std::move(line));
}

std::vector<std::string> scenario_notes(const Scenario& scenario, const std::string& file,
                                        const std::vector<Setting>& set) {
  std::vector<std::string> notes;
  add_each_once(notes, file_notes(file, set));
  add_each_once(notes, cluster_notes(scenario, set));
  return notes;
}

std::vector<std::string> fit_notes(const CalibratedModel& priced) {
  if (priced.others.empty()) return {};
  return {carried_fit_note(priced.others)};
}

std::vector<std::string> run_notes(const Comparison& run, const std::string& file,
                                   const std::vector<Setting>& set) {
  std::vector<std::string> notes = scenario_notes(run.scenario, file, set);
  add_each_once(notes, fit_notes(run.priced));
  add_each_once(notes, run_warnings(run));
  if (memory_warnings(run.scenario, run.named()).size() == run.compared.size())
    if (std::string advice = memory_advice(file, set); !advice.empty())
      add_each_once(notes, {std::move(advice)});
  return notes;
}

std::vector<std::string> unfit_notes(const Scenario& scenario, const Tuning& tuning,
                                     const std::string& file, const std::vector<Setting>& set) {
  std::vector<std::string> notes = tune_warnings(scenario, tuning);
  if (notes.empty()) return notes;
  std::vector<Setting> bucketed_alone = set;
  std::erase_if(bucketed_alone, [](const Setting& setting) { return setting.key == "compare"; });
  bucketed_alone.emplace_back("compare", "[bucketed]");
  if (std::string advice = memory_advice(file, bucketed_alone); !advice.empty())
    notes.push_back(std::move(advice));
  return notes;
}

std::vector<std::string> take_as_tuned(Training& training) {
  std::vector<std::string> notes;
  if (training.strategy != Strategy::bucketed)
    notes.push_back(fmt::format("tune is of `bucketed`, whatever training.strategy says ({})",
                                name_of(training.strategy)));
  if (training.iteration != 0)
    notes.push_back(fmt::format("tune is of a steady step: training.{} has no effect",
                                training.iteration == 1 ? "phase (or iteration)" : "iteration"));
  training.strategy = Strategy::bucketed;
  training.iteration = 0;
  return notes;
}

std::vector<std::string> tune_notes(const Scenario& scenario, const CalibratedModel& priced,
                                    const Tuning& tuning, const std::string& file,
                                    const std::vector<Setting>& set) {
  std::vector<std::string> notes = scenario_notes(scenario, file, set);
  add_each_once(notes, fit_notes(priced));
  add_each_once(notes, unfit_notes(scenario, tuning, file, set));
  return notes;
}

}  // namespace ddpsim
