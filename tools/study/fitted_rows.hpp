#pragma once

#include <cstddef>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// The scenario that a row was measured in: the file of `scenario` with `settings` and with the
/// keys that the row sets itself, which go before them. Throws InputError.
Scenario scenario_of(const MeasuredRow& row, const Scenario& scenario,
                     std::vector<Setting> settings = {});

/// The rows of one strategy that are fitted: one run, and its repeats.
struct FittedRows {
  Strategy strategy = Strategy::none;
  std::vector<std::size_t> rows;  ///< in Measured::rows; never empty
};

/// The rows that are fitted, of each strategy in `strategies` that has one with a use. Of several
/// rows of a strategy it is the one nearest to the scenario as it runs:
///   1. its device, model, number formats, batch, sequence, optimizer and work are those of the
///      scenario, and its ranks and link if it communicates (step_facts.hpp), or the fewest differ;
///   2. it sets the fewest keys of its own that are otherwise in the file;
///   3. it says its communication;
///   4. it is the first.
/// The other rows of the strategy with the same settings are repeats of it. `settings`: keys with
/// which the rows were measured besides. Throws InputError.
std::vector<FittedRows> fitted_rows(const Scenario& scenario,
                                    const std::vector<Strategy>& strategies,
                                    const std::vector<Setting>& settings = {});

/// Is the row of this index one of those?
bool is_fitted(const std::vector<FittedRows>& fitted, std::size_t row);

/// What is fitted: the means over repeats, of each time over the rows that say it, and of
/// communication over those whose timers covered the same.
MeasuredRow mean_row(const Measured& measured, const FittedRows& fitted);

}  // namespace ddpsim
