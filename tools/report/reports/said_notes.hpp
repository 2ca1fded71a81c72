#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/text/settings.hpp"
#include "sim/tune/shards.hpp"
#include "sim/tune/tune.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

// What a command says beside its results, in sentences without "note: ", each once, in the order in
// which a terminal shows them: the key `notes` of results.

/// On the files that the scenario of `file` and `set` names, and on its cluster.
std::vector<std::string> scenario_notes(const Scenario& scenario, const std::string& file,
                                        const std::vector<Setting>& set);

/// On a strategy of `set` where `compare` says which are predicted: in `run` and `sweep`.
std::vector<std::string> idle_strategy_notes(const Scenario& scenario,
                                             const std::vector<Setting>& set);

/// On a fit to measured rows of something else (tools/study/carried_fit.hpp).
std::vector<std::string> fit_notes(const CalibratedModel& priced);

/// What `ddpsim run` says: those, and notes on its steps, on its curves over numbers of ranks and,
/// where no step fits the device's memory, on what would fit.
std::vector<std::string> run_notes(const Comparison& run, const std::string& file,
                                   const std::vector<Setting>& set,
                                   const std::vector<ScalingCurve>& curves = {});

/// What `ddpsim run --scaling` says: what holds at the scenario's own size and is taken at others,
/// and the exceptions that are not in every point.
std::vector<std::string> scaling_notes(const Comparison& run,
                                       const std::vector<ScalingCurve>& curves);

/// Where the step with the recommended buckets does not fit the device's memory: that, and what
/// would fit.
std::vector<std::string> unfit_notes(const Scenario& scenario, const Tuning& tuning,
                                     const std::string& file, const std::vector<Setting>& set);

/// Makes the training of a scenario that is to be tuned what `tune` is of, a steady step under
/// `bucketed`. A note for each key that says otherwise.
std::vector<std::string> take_as_tuned(Training& training);

/// What `ddpsim tune` says: scenario_notes, fit_notes, far_row_notes and unfit_notes.
std::vector<std::string> tune_notes(const Scenario& scenario, const CalibratedModel& priced,
                                    const Tuning& tuning, const std::string& file,
                                    const std::vector<Setting>& set);

/// What it says of a sharded step: the same, and that no sharding fits, where none does.
std::vector<std::string> shard_notes(const Scenario& scenario, const CalibratedModel& priced,
                                     const ShardTuning& tuning, const std::string& file,
                                     const std::vector<Setting>& set);

/// Adds those of `more` that are not among `notes`.
void add_each_once(std::vector<std::string>& notes, std::vector<std::string> more);

}  // namespace ddpsim
