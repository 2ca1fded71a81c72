#include "tools/study/measured_rows.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/cluster/deciding_link.hpp"
#include "tools/study/table_ranks.hpp"

namespace ddpsim {
namespace {

bool contains(const std::vector<Strategy>& strategies, Strategy strategy) {
  return std::find(strategies.begin(), strategies.end(), strategy) != strategies.end();
}

/// "" for one rank.
std::string kind_of_link(const Cluster& cluster) {
  if (cluster.ranks() == 1) return "";
  return std::string(name_of(deciding_link(cluster).kind));
}

bool has_row(const std::vector<CalibrationRow>& rows, Strategy strategy) {
  return std::ranges::any_of(
      rows, [&](const CalibrationRow& row) { return row.row->strategy == strategy; });
}

/// A row's own keys but for its ranks, which only make a step longer than one rank's.
std::string keys_beside_ranks(const MeasuredRow& row) {
  std::string keys;
  for (const auto& [key, value] : row.set)
    if (key != "cluster.nodes" && key != "cluster.ranks_per_node")
      keys += fmt::format("{}={};", key, value);
  return keys;
}

/// Says where a step with communication is shorter than the one without, to which computation is
/// fitted, by more than measurements differ; of several such rows the shortest. "": nowhere.
std::string below_none(const std::vector<CalibrationRow>& rows, const MeasuredRow& none) {
  constexpr double noise = 0.05;
  const MeasuredRow* shortest = nullptr;
  for (const CalibrationRow& each : rows) {
    const MeasuredRow& row = *each.row;
    if (row.strategy == Strategy::none || each.model.costs.ranks == 1) continue;
    if (shares_update(row.strategy)) continue;  // each rank updates a part alone
    if (keys_beside_ranks(row) != keys_beside_ranks(none)) continue;
    if (shortest == nullptr || row.step < shortest->step) shortest = &row;
  }
  if (shortest == nullptr || in_seconds(shortest->step) >= (1 - noise) * in_seconds(none.step))
    return "";
  return fmt::format(
      "the {} row's step of {:.1f} ms is {:.0f} % shorter than the none row's of {:.1f} ms, and a "
      "step with communication cannot be: are both of the same batch, types and machine?",
      name_of(shortest->strategy), in_ms(shortest->step),
      100 * (1 - in_seconds(shortest->step) / in_seconds(none.step)), in_ms(none.step));
}

/// Says where computation was fitted to a step with communication alone, of which nobody measured
/// how much was communication, and comes out far from the laws. "": that is not so. `has_none`: is
/// there a row of none, to which nothing is fitted?
std::string beside_the_laws(const std::vector<CalibrationRow>& calibration, const Fit& fitted,
                            bool has_none) {
  constexpr double low = 0.7, high = 1.5;
  const PassFactors& passes = fitted.passes;
  const auto far = [&](double factor) { return factor < low || factor > high; };
  if (!far(passes.forward) && !far(passes.backward)) return "";
  for (const CalibrationRow& each : calibration) {
    const MeasuredRow& row = *each.row;
    if (row.strategy == Strategy::none || row.communication || row.times.forward ||
        row.times.backward || each.model.costs.ranks == 1)
      return "";
  }
  return fmt::format(
      "forward and backward x {:.2f} is far from the laws: a host, a network or links that differ "
      "from the scenario's would look the same in this one row; {}`communication: TIME` in it, "
      "tells them apart",
      far(passes.backward) ? passes.backward : passes.forward,
      has_none ? "the file's row of none, if `calibrate_on` has it, or " : "a row of none, or ");
}

/// Which rows could be fitted, where those of `strategies` may be.
std::string rows_to_measure(const std::vector<Strategy>& strategies) {
  const auto key_for = [&](Strategy strategy) {
    return contains(strategies, strategy)
               ? std::string()
               : fmt::format(" with `calibrate_on: [{}]`", name_of(strategy));
  };
  return fmt::format(
      ": a row of naive{}, or of none (DistributedDataParallel under no_sync()){}, can be fitted",
      key_for(Strategy::naive), key_for(Strategy::none));
}

std::optional<DType> format_of_cast(const Workload& workload) {
  return main_format(workload.cast ? *workload.cast : workload);
}

}  // namespace

std::vector<CalibrationRow> measured_rows(const Scenario& scenario,
                                          const std::vector<Setting>& settings) {
  struct Variant {
    Training training;
    StepModel model;
    std::string link, device;
    std::optional<DType> compute, of_cast;  ///< of passes whose parameters are cast (passes_of)
    int table_ranks = 0;
  };
  std::map<decltype(MeasuredRow::set), Variant> variants;
  std::vector<CalibrationRow> rows;
  for (const MeasuredRow& row : scenario.measured->rows) {
    auto found = variants.find(row.set);
    if (found == variants.end()) {
      const Scenario variant = scenario_of(row, scenario, settings);
      found =
          variants
              .emplace(row.set,
                       Variant{variant.training, model_of(variant), kind_of_link(variant.cluster),
                               variant.cluster.device.name, main_format(variant.workload),
                               format_of_cast(variant.workload), ranks_of_table(variant.cluster)})
              .first;
    }
    Training training = found->second.training;
    training.strategy = row.strategy;
    if (row.bucket_cap) training.give_cap(*row.bucket_cap);
    const Variant& variant = found->second;
    rows.push_back({&row, training, variant.model, variant.link, variant.device,
                    training.casts_parameters() ? variant.of_cast : variant.compute,
                    variant.table_ranks});
  }
  return rows;
}

Fit fit_chosen(const Scenario& scenario, const std::vector<CalibrationRow>& rows,
               const std::vector<Strategy>& strategies, const std::vector<Setting>& settings) {
  const std::vector<FittedRows> chosen = fitted_rows(scenario, strategies, settings);
  std::vector<MeasuredRow> means;
  for (const FittedRows& each : chosen) means.push_back(mean_row(*scenario.measured, each));
  std::vector<CalibrationRow> calibration;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    calibration.push_back(rows[chosen[i].rows.front()]);
    calibration.back().row = &means[i];
  }
  Fit fitted = fit(calibration);
  for (const CalibrationRow& row : calibration)
    if (row.row->strategy == Strategy::none)
      if (std::string note = below_none(rows, *row.row); !note.empty())
        fitted.notes.push_back(std::move(note));
  const bool has_none = has_row(rows, Strategy::none);
  if (std::string note = beside_the_laws(calibration, fitted, has_none); !note.empty())
    fitted.notes.push_back(std::move(note));
  if (calibration.empty() && !has_measured_kernels(scenario.workload))
    fitted.notes.push_back(
        strategies.empty()
            ? "the file's own measured rows are not used: predictions come from the laws alone"
            : "no row to calibrate on, so predictions come from the laws alone" +
                  rows_to_measure(strategies));
  if (contains(strategies, Strategy::naive) && has_row(rows, Strategy::naive) &&
      !has_row(calibration, Strategy::naive))
    fitted.notes.emplace_back(
        "nothing is fitted to the naive row, which is predicted: computation is fitted to the row "
        "of none, and communication to a naive row with its `communication: TIME`");
  return fitted;
}

CalibratedModel price_calibrated(const Scenario& scenario, bool laws_only) {
  CalibratedModel priced{model_of(scenario), std::nullopt};
  if (laws_only || !scenario.measured) return priced;
  const std::vector<CalibrationRow> rows = measured_rows(scenario);
  priced.fit = fit_chosen(scenario, rows, scenario.measured->calibrate_on);
  apply(*priced.fit, priced.model.costs);
  priced.others = other_than_measured(scenario);
  if (scenario.times.forward || scenario.times.backward)
    priced.fit->notes.emplace_back("the measured rows are used, and workload.times is not");
  return priced;
}

}  // namespace ddpsim
