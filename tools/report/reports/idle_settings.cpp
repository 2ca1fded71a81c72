#include "tools/report/reports/idle_settings.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/reports/run_report.hpp"
#include "tools/report/writers/json_writer.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_tasks = 200'000;  // of all steps that are predicted for this

std::string figures_of(const Comparison& run) {
  return json_of(run_record(run, more_of(run, {}), {})).dump();
}

/// Notes may leave out the first word of a key: "inter_node has no effect".
bool is_named(const std::vector<std::string>& notes, const std::string& key) {
  const std::string name = key.substr(key.find('.') + 1);
  return std::ranges::any_of(
      notes, [&](const std::string& note) { return note.find(name) != std::string::npos; });
}

}  // namespace

std::vector<std::string> idle_settings_notes(const Comparison& run, const std::string& file,
                                             const std::vector<Setting>& set, bool laws_only,
                                             const std::vector<std::string>& said) {
  std::size_t tasks = 0;
  for (const Step& step : run.compared) tasks += step.schedule.tasks.size();
  if (tasks * set.size() > most_tasks) return {};
  std::vector<std::string> notes;
  std::string figures;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!set[i].written.empty() || is_named(said, set[i].key)) continue;
    std::vector<Setting> others = set;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    try {
      const Comparison without(read_scenario(file, others), laws_only);
      if (figures.empty()) figures = figures_of(run);
      if (figures_of(without) != figures) continue;
    } catch (const InputError&) {  // what it says is needed
      continue;
    } catch (const std::invalid_argument&) {  // likewise
      continue;
    }
    notes.push_back(fmt::format("{} changes no figure here: all are the same without it",
                                setting_text(set[i])));
  }
  return notes;
}

}  // namespace ddpsim
