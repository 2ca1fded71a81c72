#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/predict/run_ahead.hpp"
#include "tools/report/comparison.hpp"

namespace ddpsim {

/// `--run-ahead`: the same steps as `steps`, of each compared strategy, joined. Throws InputError, which
/// names the scenario, of what run_ahead() refuses.
std::vector<RunAhead> joined_runs(const Comparison& run,
                                  const std::vector<ConsecutiveSteps>& steps);

/// A row for every stretch of steps that are alike, and what running ahead gains.
std::string run_ahead_text(const Comparison& run, const std::vector<ConsecutiveSteps>& steps,
                           const std::vector<RunAhead>& joined);

/// What "run_ahead" holds in a result of `run --json`; steps are counted from 1.
nlohmann::ordered_json run_ahead_json(const ConsecutiveSteps& steps, const RunAhead& joined);

}  // namespace ddpsim
