#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"
#include "sim/predict/fit.hpp"

namespace ddpsim {

/// One measured row held against its prediction.
struct ScoreRow {
  std::string file;
  std::string label;  ///< strategy, cap and what else the row changes
  int ranks = 1;
  std::string link;  ///< kind of the link that decides: inside the node, or between nodes
  std::string device;
  std::optional<DType> compute;  ///< how most products are multiplied; none: not known
  Strategy strategy = Strategy::none;
  Bytes bucket_cap;  ///< zero: the strategy has none
  Duration measured{}, predicted{};
  bool calibration = false;  ///< it was fitted, by itself or among repeats
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

/// What a score is made with.
struct ScoreSettings {
  std::vector<Strategy> calibrate_on;  ///< empty: as each file says
  bool laws_only = false;              ///< nothing is fitted: every row is predicted
  std::vector<Setting> set;            ///< keys of every scenario
};

/// "naive,overlap", as `--calibrate-on` takes it. Throws InputError.
std::vector<Strategy> fitted_strategies(const std::string& list);

/// Fits on rows whose strategy is in `calibrate_on`, of each strategy those that fitted_rows.hpp
/// says, and predicts all rows. Nothing if the file lacks a row of a strategy that was asked for:
/// it cannot be held against the others then. Throws InputError.
std::optional<FileScore> score_file(const std::string& file, const ScoreSettings& settings);
/// The score of a scenario that has measured rows and was read with `settings.set`.
std::optional<FileScore> score_scenario(const std::string& file, const Scenario& scenario,
                                        const ScoreSettings& settings);

/// Over all predicted (not calibration) rows; errors as fractions, absolute.
struct ScoreSummary {
  std::size_t predicted_rows = 0;
  double median_error = 0, ninth_decile_error = 0, worst_error = 0;
  double bias = 0;                             ///< the mean of the errors with their signs
  std::optional<double> median_exposed_error;  ///< none: no row has such a figure
};
ScoreSummary summarise(const std::vector<FileScore>& files);

/// The figures of the rows that have something in common.
struct ScoreGroup {
  std::string of;  ///< "2 ranks", "nvlink"
  ScoreSummary summary;
};
/// By number of ranks, from few to many, then by kind of link.
std::vector<ScoreGroup> group(const std::vector<FileScore>& files);

}  // namespace ddpsim
