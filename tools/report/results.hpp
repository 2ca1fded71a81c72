#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"
#include "tools/report/page.hpp"

namespace ddpsim {

/// A step, predicted or measured, with the two it is judged by.
struct Result {
  const Step* step = nullptr;
  const StepMetrics* none = nullptr;   ///< the same step without communication
  const StepMetrics* naive = nullptr;  ///< the same step under `naive`

  double speedup() const { return in_seconds(naive->step) / in_seconds(step->metrics.step); }
};

/// One entry of "results"; times in ms, sizes in bytes.
Record result_record(const Scenario& scenario, const Result& result);

/// "ddpsim.run/1", of those entries.
Record run_record(const Scenario& scenario, List results);

/// The columns of `run --csv`, of which the first seven are those of the CS336 tables, and what stands
/// in a row.
const std::vector<Field>& run_columns();
Record run_row(const Scenario& scenario, const Result& result);

/// The table and the timelines `ddpsim run` prints. `law` says what all-reduces cost.
Page run_page(const Scenario& scenario, const std::string& law, const std::vector<Result>& results);

}  // namespace ddpsim
