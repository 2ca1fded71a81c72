#include "tools/study/run_variants.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_points = 1000;

}  // namespace

Variants run_variants(const std::string& file, const std::vector<Setting>& set, const Grid& grid,
                      bool laws_only, const std::function<void(std::size_t)>& watch) {
  if (grid.points() > most_points)
    throw InputError(
        fmt::format("--vary makes {} combinations: run compares at most {}; ddpsim sweep "
                    "takes more",
                    grid.points(), most_points));
  check_varied_alone(grid, set);
  Variants variants;
  for (std::size_t point = 0; point < grid.points(); ++point) {
    auto settings = grid.settings(point);
    std::vector<Setting> overrides = set;
    overrides.insert(overrides.end(), settings.begin(), settings.end());
    const auto refuse = [&](const char* problem) {
      variants.refused.push_back({settings, problem});
    };
    try {
      Comparison run(read_scenario(file, overrides), laws_only);
      variants.runs.push_back({settings, std::move(run)});
    } catch (const InputError& problem) {
      refuse(problem.what());
    } catch (const std::invalid_argument& problem) {  // a law refuses what the scenario asks of it
      refuse(problem.what());
    }
    if (watch) watch(point + 1);
  }
  if (variants.runs.empty()) throw InputError(variants.refused.front().problem);
  return variants;
}

}  // namespace ddpsim
