#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reader/accuracy_reader.hpp"
#include "tools/study/measured_rows.hpp"

namespace ddpsim {

/// What decides how far predictions are off.
struct PredictionKind {
  std::string device;  ///< "h100-sxm"; any CPU is a "cpu"
  std::string link;    ///< the kind of the link that decides: "nvlink"; "" of one rank
  int ranks = 1;
  FittedOn fitted = FittedOn::laws;
};
/// Of a scenario's predictions. What is known of steps on CPUs is of calibrations and profiles, of
/// steps on GPUs of laws and rows; none where nothing is known of such.
std::optional<PredictionKind> kind_of(const Scenario& scenario, const std::optional<Fit>& fit);

/// How far predictions of a kind were off on measured rows. Errors are of the step, without signs.
struct KnownAccuracy {
  std::size_t rows = 0;
  std::size_t setups = 0;  ///< files of scenarios/measured that these rows are of
  double median_error = 0, ninth_decile_error = 0;
  std::string subject;  ///< "Predictions of this kind", or in which way they are not
  std::string rows_of;  ///< what they have in common: "h100-sxm, nvlink, 2 to 8 ranks"
};
/// Of rows of the same device, kind of link and number of ranks; where they are fewer than eight,
/// of any number of ranks above one; then of any device by that kind of link, with the same ranks
/// and with any; then of all rows that were predicted from what these were. None: there is no such
/// row.
std::optional<KnownAccuracy> known_accuracy(const std::vector<KnownErrors>& all,
                                            const PredictionKind& kind);

/// Of predictions of a scenario: what accuracy.yaml says of their kind; none where it says nothing.
std::optional<KnownAccuracy> accuracy_of(const Scenario& scenario, const std::optional<Fit>& fit);

/// A sentence: "Predictions of this kind were 1.8 % off in the median (9 in 10 within 4.6 %) on 23
/// measured rows: h100-sxm, nvlink, 2 to 8 ranks, one row fitted."
std::string sentence(const KnownAccuracy& accuracy);

}  // namespace ddpsim
