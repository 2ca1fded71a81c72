#pragma once

#include <vector>

#include "tools/command/measured_rows.hpp"
#include "tools/report/names.hpp"
#include "tools/report/results.hpp"

namespace ddpsim {

/// Every strategy a scenario compares, predicted at one price.
struct Comparison {
  Scenario scenario;
  CalibratedModel priced;
  Step none, naive;  ///< what the others are judged by
  std::vector<Step> compared;

  /// Calibrated on the scenario's measured rows, unless `laws_only`.
  Comparison(Scenario read, bool laws_only);

  /// These point into this object.
  std::vector<Result> results() const;
  std::vector<NamedStep> named() const;

 private:
  Step step(Strategy strategy) const;
};

}  // namespace ddpsim
