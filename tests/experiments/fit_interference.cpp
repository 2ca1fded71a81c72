#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "model/cost/interference.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tools/study/measured_rows.hpp"

// Fits the share of its bandwidth that a collective between GPUs over PCIe loses beside kernels
// (model/cost/interference.hpp) on measured rows:
//
//     fit_interference FILE...
//
// In the files whose GPUs copy to each other over PCIe the naive row is fitted, and the overlapped
// and bucketed rows are predicted under shares from 0.3 to 0.6. A source is the first word of a
// file's name, and counts once however many rows it has. Prints, by share: the mean error of each
// source, and the root of the mean of their mean squares; then the share with the least of all
// sources, of each alone, with each left out, and if each row counted once.

namespace ddpsim {
namespace {

constexpr int lowest = 30, highest = 60;  // hundredths
using Shares = std::array<double, highest + 1>;

struct Source {
  int rows = 0;
  Shares errors{}, squares{};  // sums, by share
};

/// By how much interference is stronger at a share than the law has it: of PCIe, next to nothing
/// but the collective's own slowdown is left to be scaled.
double strength_at(double share) {
  const auto longer = [](double lost) { return 1 / (1 - lost) - 1; };
  return longer(share) / longer(InterferenceLaw::lost_over_pcie);
}

bool has(const std::vector<CalibrationRow>& rows, Strategy strategy) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const CalibrationRow& row) { return row.training.strategy == strategy; });
}

void add_rows(const Scenario& scenario, const std::vector<CalibrationRow>& rows, Source& source) {
  const Fit fitted = fit_chosen(scenario, rows, {Strategy::naive});
  for (const CalibrationRow& row : rows) {
    const Strategy strategy = row.training.strategy;
    if (strategy != Strategy::overlap && strategy != Strategy::bucketed) continue;
    ++source.rows;
    for (std::size_t share = lowest; share <= highest; ++share) {
      Fit fit = fitted;
      fit.interference = strength_at(0.01 * static_cast<double>(share));
      StepModel model = row.model;
      apply(fit, model.costs);
      const double error =
          in_seconds(predict(model, row.training).metrics.step) / in_seconds(row.row->step) - 1;
      source.errors[share] += error;
      source.squares[share] += error * error;
    }
  }
}

bool copies_over_pcie(const Cluster& cluster) {
  return cluster.nodes == 1 && cluster.ranks() > 1 && cluster.intra_node.kind == LinkKind::pcie &&
         cluster.device.peer_to_peer;
}

using Sources = std::map<std::string, Source>;

double mean_square(const Sources& sources, std::size_t share) {
  double sum = 0;
  for (const auto& [name, source] : sources) sum += source.squares[share] / source.rows;
  return sum / static_cast<double>(sources.size());
}

std::size_t best(const Sources& sources) {
  std::size_t least = lowest;
  for (std::size_t share = lowest; share <= highest; ++share)
    if (mean_square(sources, share) < mean_square(sources, least)) least = share;
  return least;
}

Sources without(Sources sources, const std::string& name) {
  sources.erase(name);
  return sources;
}

/// All rows as those of one source.
Sources together(const Sources& sources) {
  Source all;
  for (const auto& [name, source] : sources) {
    all.rows += source.rows;
    for (std::size_t share = lowest; share <= highest; ++share)
      all.squares[share] += source.squares[share];
  }
  return {{"all", all}};
}

void print(const Sources& sources) {
  for (std::size_t share = lowest; share <= highest; ++share) {
    std::printf("0.%02zu: %.3f %%", share, 100 * std::sqrt(mean_square(sources, share)));
    for (const auto& [name, source] : sources)
      std::printf(", %s %+.2f %%", name.c_str(), 100 * source.errors[share] / source.rows);
    std::printf("\n");
  }
  std::printf("best: 0.%02zu\n", best(sources));
  for (const auto& [name, source] : sources) {
    const Sources alone{{name, source}};
    std::printf("alone %s: 0.%02zu, %d rows\n", name.c_str(), best(alone), source.rows);
  }
  for (const auto& [name, source] : sources) {
    if (sources.size() == 1) break;
    const std::size_t share = best(without(sources, name));
    std::printf("without %s: 0.%02zu, %s %+.2f %%\n", name.c_str(), share, name.c_str(),
                100 * source.errors[share] / source.rows);
  }
  std::printf("rows alike: 0.%02zu\n", best(together(sources)));
}

}  // namespace
}  // namespace ddpsim

int main(int count, char** words) {
  using namespace ddpsim;
  Sources sources;
  try {
    for (int i = 1; i < count; ++i) {
      const std::string file = words[i], name = file.substr(file.rfind('/') + 1);
      const Scenario scenario = read_scenario(file, {});
      if (!scenario.measured || !copies_over_pcie(scenario.cluster)) continue;
      const std::vector<CalibrationRow> rows = measured_rows(scenario);
      if (has(rows, Strategy::naive) && has(rows, Strategy::overlap))
        add_rows(scenario, rows, sources[name.substr(0, name.find('-'))]);
    }
    if (sources.empty()) throw std::runtime_error("no file of GPUs that copy over PCIe");
    print(sources);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
