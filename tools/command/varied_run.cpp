#include "tools/command/varied_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/scenario_reader.hpp"
#include "sim/predict/consecutive.hpp"
#include "tools/report/csv.hpp"
#include "tools/report/names.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_points = 1000;

std::string full_label(const VariedRun& varied) {
  std::string text;
  for (const auto& [key, value] : varied.settings)
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", key, value);
  return text;
}

/// What a step takes in the long run: post_local_sgd averages models in one of several.
Duration lasting(const VariedRun& varied, const Step& step) {
  const auto averaged = averaged_step(varied.run.priced.costs, step);
  return averaged ? averaged->mean : step.metrics.step;
}

/// The step of one strategy; null: this run has none.
const Step* step_under(const VariedRun& varied, Strategy strategy) {
  for (const Step& step : varied.run.compared)
    if (step.training.strategy == strategy) return &step;
  return nullptr;
}

std::string ms(Duration time) {
  return fmt::format("{:.2f}", in_ms(time));
}

}  // namespace

std::vector<VariedRun> run_varied(const std::string& file, const std::vector<Setting>& set,
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

std::string varied_table(const std::vector<VariedRun>& runs) {
  const Scenario& scenario = runs.front().run.scenario;
  std::string text = fmt::format("{}\n{}; {} x {}\n\n", scenario.name, scenario.workload.name,
                                 scenario.cluster.ranks(), scenario.cluster.device.name);
  Table table({"combination", "strategy", "step ms", "against first", "exposed ms", "comm ms",
               "collectives", "wire", "hook ms", "hook memory", "bound"});
  struct Best {
    const VariedRun* run;
    const Step* step;
    Duration lasting{};
  };
  Best best{nullptr, nullptr, {}};
  bool averages = false;
  std::size_t strategies = 0;
  for (const VariedRun& varied : runs)
    strategies = std::max(strategies, varied.run.compared.size());
  for (std::size_t s = 0; s < strategies; ++s)
    for (const VariedRun& varied : runs) {
      if (s >= varied.run.compared.size()) continue;  // `compare` itself varies
      const Step& step = varied.run.compared[s];
      const StepMetrics& metrics = step.metrics;
      const Duration lasts = lasting(varied, step);
      averages = averages || lasts != metrics.step;
      const Step* first = step_under(runs.front(), step.training.strategy);
      table.add(
          {short_label(varied.settings), std::string(name_of(step.training.strategy)), ms(lasts),
           first == nullptr
               ? "-"
               : fmt::format(
                     "{:+.1f} %",
                     100 * (in_seconds(lasts) / in_seconds(lasting(runs.front(), *first)) - 1)),
           ms(lasts - varied.run.none.metrics.step), ms(metrics.communication),
           fmt::format("{}", metrics.collectives), to_string(metrics.wire), ms(metrics.comm_hook),
           to_string(step.schedule.comm_hook_memory), std::string(name_of(metrics.bound))});
      const bool communicates = step.training.strategy != Strategy::none &&
                                step.schedule.comm_hook.kind != CommHookKind::noop;
      if (communicates && (best.step == nullptr || lasts < best.lasting))
        best = {&varied, &step, lasts};
    }
  text += table.text();
  text +=
      "\nexposed: step minus the same without communication; wire: handed to collectives by each "
      "rank; hook: its own kernels\n";
  if (averages)
    text +=
        "post_local_sgd: step and exposed are means over a period, in which models are averaged "
        "once; the rest is of a step between\n";
  if (best.step != nullptr)
    text += fmt::format("shortest: {}, {}: {} ms\n", short_label(best.run->settings),
                        strategy_label(best.step->training), ms(best.lasting));
  return text;
}

nlohmann::ordered_json varied_json(const std::vector<VariedRun>& runs) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const VariedRun& varied : runs) {
    nlohmann::ordered_json json = run_json(varied.run.scenario, varied.run.results());
    json["set"] = nlohmann::ordered_json::object();
    for (const auto& [key, value] : varied.settings) json["set"][key] = value;
    all.push_back(std::move(json));
  }
  return all;
}

std::string varied_csv(const std::vector<VariedRun>& runs) {
  std::string header = run_csv_header();
  header.pop_back();
  std::string text = header + ",set\n";
  for (const VariedRun& varied : runs) {
    const std::string rows = run_csv(varied.run.scenario, varied.run.results());
    for (std::size_t begin = 0; begin < rows.size();) {
      const std::size_t end = rows.find('\n', begin);
      text +=
          fmt::format("{},{}\n", rows.substr(begin, end - begin), csv_field(full_label(varied)));
      begin = end + 1;
    }
  }
  return text;
}

}  // namespace ddpsim
