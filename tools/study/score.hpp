#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/predict/fit.hpp"

namespace ddpsim {

/// One measured row held against its prediction.
struct ScoreRow {
  std::string file;
  std::string label;  ///< strategy, cap and what else the row changes
  Strategy strategy = Strategy::none;
  Bytes bucket_cap;  ///< zero: the strategy has none
  Duration measured{}, predicted{};
  bool calibration = false;  ///< its step was used in the fit
  /// |predicted - measured| / naive communication of the file; < 0: no such figure.
  double exposed_error = 0;
  std::string note;

  double error() const { return in_seconds(predicted) / in_seconds(measured) - 1; }
};

struct FileScore {
  std::string file;
  std::string name;
  Fit fit;
  std::vector<ScoreRow> rows;
};

/// Fits on the rows whose strategy is in `calibrate_on` (empty: as the file says) and predicts all
/// of them. Only the first row of a strategy calibrates. Nothing if the file lacks a row of a
/// strategy that was asked for: it cannot be held against the others then. Throws InputError.
std::optional<FileScore> score_file(const std::string& file,
                                    const std::vector<Strategy>& calibrate_on);

/// Over all predicted (not calibration) rows; errors as fractions, absolute.
struct ScoreSummary {
  std::size_t predicted_rows = 0;
  double median_error = 0, ninth_decile_error = 0, worst_error = 0;
  double median_exposed_error = 0;
};
ScoreSummary summarise(const std::vector<FileScore>& files);

}  // namespace ddpsim
