#pragma once

#include <vector>

#include "sim/predict/run_ahead.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// `--run-ahead`: the same steps as `steps`, of each compared strategy, joined. Throws InputError,
/// which names the scenario, of what run_ahead() refuses.
std::vector<RunAhead> joined_runs(const Comparison& run,
                                  const std::vector<ConsecutiveSteps>& steps);

/// A row for every stretch of steps that are alike, and what running ahead gains.
Page run_ahead_page(const Comparison& run, const std::vector<ConsecutiveSteps>& steps,
                    const std::vector<RunAhead>& joined);

/// What "run_ahead" holds in a result of `run --json`; steps are counted from 1.
Record run_ahead_record(const ConsecutiveSteps& steps, const RunAhead& joined);

}  // namespace ddpsim
