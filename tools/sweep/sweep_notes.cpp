#include "tools/sweep/sweep_notes.hpp"

#include <algorithm>
#include <stdexcept>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/reports/cluster_notes.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/study/carried_fit.hpp"
#include "tools/study/file_notes.hpp"
#include "tools/study/known_accuracy.hpp"
#include "tools/study/point_notes.hpp"

namespace ddpsim {
namespace {

std::vector<std::string> notes_at(const Sweep& sweep, const std::vector<Setting>& here) {
  std::vector<Setting> settings = sweep.set;
  settings.insert(settings.end(), here.begin(), here.end());
  try {
    const Scenario scenario = read_scenario(sweep.file, settings);
    std::vector<std::string> notes = cluster_notes(scenario, settings);
    add_each_once(notes, idle_strategy_notes(scenario, settings));
    if (sweep.laws_only) return notes;
    if (const auto others = other_than_measured(scenario); !others.empty())
      notes.push_back(carried_fit_note_at_point(others));
    return notes;
  } catch (const InputError&) {             // the point's row says so
  } catch (const std::invalid_argument&) {  // likewise, of a law
  }
  return {};
}

}  // namespace

std::vector<std::string> sweep_notes(const Sweep& sweep, const PointResults& results,
                                     const std::optional<Field>& best) {
  constexpr std::size_t most_read = 64;
  PointNotes of_points;
  for (std::size_t point = 0; point < std::min(sweep.grid.points(), most_read); ++point) {
    const std::vector<Setting> here = sweep.grid.settings(point);
    of_points.add(here, notes_at(sweep, here));
  }
  std::vector<std::string> notes;
  add_each_once(notes, file_notes(sweep.file, sweep.set));
  add_each_once(notes, lost_accuracy_notes());
  add_each_once(notes, of_points.lines(sweep.grid.points()));
  add_each_once(notes, ranks_notes_of(sweep, results));
  if (best) add_each_once(notes, unpriced_notes(sweep, results, *best));
  add_each_once(notes, memory_notes(sweep, results));
  return notes;
}

}  // namespace ddpsim
