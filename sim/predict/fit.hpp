#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/predict/predict.hpp"

namespace ddpsim {

/// A measured row with the model of the scenario it was measured in.
struct CalibrationRow {
  const MeasuredRow* row = nullptr;
  Training training;
  StepModel model;
  std::string link{};              ///< the kind of link that decides, for who groups rows by it
  std::string device{};            ///< its name, likewise
  std::optional<DType> compute{};  ///< the workload's main_format, likewise
  int table_ranks = 0;  ///< that measured its all-reduces, likewise; 0: they are by a law
};

/// What real rows say about a setup. Nothing but these numbers is ever taken from a measurement.
struct Fit {
  PassFactors passes;  ///< on the laws' forward and backward (one factor for both, unless a row
                       ///< gives them apart) and optimizer (1, unless a row gives it)
  Duration call_overhead{};        ///< on every collective
  double interference = 1;         ///< strength of the interference law
  std::size_t rows = 0;            ///< how many rows it was made from
  std::vector<std::string> notes;  ///< what could not be matched
};

/// Fits, in this order:
///   1. call overhead: from a row of which calls are fitted (Fits) that gives its communication
///      time, so that the sum of its collectives is as measured (or, if the row also gives forward
///      and backward, so that its step is; a note says where that is another communication).
///      Bandwidth stays the law's: big messages measure it well, and what a training loop adds to a
///      benchmark's figure it adds per call (waiting for the slower rank, launching).
///   2. passes: from a row without communication, else from that one, else from one of which the
///      whole step is fitted. Totals of forward, backward or optimizer that the row gives are met;
///      what it does not give of forward and backward shares one factor, so that its step is as
///      measured. The optimizer, copies and divisions stay the law's otherwise; they do not scale
///      with batch.
///   3. interference strength: from a row of which that is fitted, so that its step is as measured.
/// The first row of a kind counts; rows without a use (has_use) are left alone. Each number has
/// bounds, far beyond anything plausible; where one is met, a note says so.
Fit fit(std::span<const CalibrationRow> rows);

/// Is anything fitted to a row of this strategy? Beside a row without communication, to whose step
/// computation is fitted, one of which calls are fitted needs its communication.
bool has_use(const MeasuredRow& row, bool beside_alone);

/// Puts a fit to work.
void apply(const Fit& fit, CostModel& costs);

}  // namespace ddpsim
