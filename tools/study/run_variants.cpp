#include "tools/study/run_variants.hpp"

#include <fmt/format.h>

#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/scenario_reader.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_points = 1000;

}  // namespace

std::vector<VariedRun> run_variants(const std::string& file, const std::vector<Setting>& set,
                                    const Grid& grid, bool laws_only) {
  if (grid.points() > most_points)
    throw InputError(
        fmt::format("--vary makes {} combinations: run compares at most {}; ddpsim sweep "
                    "takes more",
                    grid.points(), most_points));
  std::vector<VariedRun> runs;
  for (std::size_t point = 0; point < grid.points(); ++point) {
    auto settings = grid.settings(point);
    std::vector<Setting> overrides = set;
    overrides.insert(overrides.end(), settings.begin(), settings.end());
    runs.push_back({std::move(settings), Comparison(read_scenario(file, overrides), laws_only)});
  }
  return runs;
}

}  // namespace ddpsim
