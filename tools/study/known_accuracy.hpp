#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reader/scenario/accuracy_reader.hpp"
#include "tools/study/host_rate.hpp"
#include "tools/study/measured_rows.hpp"

namespace ddpsim {

/// What decides how far predictions are off.
struct PredictionKind {
  std::string device;  ///< "h100-sxm"; any CPU is a "cpu"
  std::string link;    ///< the kind of the link that decides: "nvlink"; "" of one rank
  int ranks = 1;
  FittedOn fitted = FittedOn::laws;
  std::optional<DType> compute{};  ///< how most products are multiplied; none: not known
  bool sharded = false;            ///< of a step of FSDP; or of one under which ranks keep all
};
/// What a scenario's predictions are made from: the best of what there is. A profile is also a
/// description that says how long kernels took.
FittedOn known_from(const Scenario& scenario, const std::optional<Fit>& fit);
/// In words that need no scenario beside them: "laws", "naive step", "profile".
std::string_view knowledge_text(FittedOn from);

/// The kind of a scenario's predictions, of steps under which ranks keep all parameters. For CPUs
/// the accuracy of calibrations and profiles is known, for GPUs that of laws and rows; none where
/// nothing is known.
std::optional<PredictionKind> kind_of(const Scenario& scenario, const std::optional<Fit>& fit);

/// What measured steps took, as factors on the predicted ones.
struct Band {
  double low = 1, high = 1;

  double half_width() const { return (high - low) / 2; }
};
/// The band that holds nine in ten of the steps with these errors (predicted / measured - 1): the
/// factors 1 / (1 + error) in order, without as many at either end as one in twenty allows. No
/// distribution is assumed, and none is of so few rows: below twenty the band holds all of them.
/// Where predictions were mostly too short, so is its low end above 1.
Band band_of(const std::vector<double>& errors);

/// How far predictions of a kind were off on measured rows. Errors are of the step, without signs.
struct KnownAccuracy {
  std::size_t rows = 0;
  std::size_t setups = 0;  ///< files of scenarios/measured that these rows are of
  double median_error = 0, ninth_decile_error = 0;
  Band band;
  std::string subject;  ///< "Predictions of this kind", or in which way they are not
  /// ", none of them on h100-sxm,": which rows are of the prediction's own device; "" if all are.
  std::string on_device;
  /// What they have in common: "h100-sxm, nvlink, 2 to 8 ranks"; and where most of them multiply in
  /// another number format than the prediction's step does, that.
  std::string rows_of;
  /// Where `band` is wider than that of these rows, theirs: see known_accuracy().
  std::optional<Band> band_of_all{};
  /// The host of the predicted step, where its rate is assumed: a band is around what the step
  /// takes on any host.
  std::optional<UnknownHost> host{};
};
/// The accuracy on rows, of sharded steps or of others as the prediction is, of the same device,
/// number format, kind of link and number of ranks; if fewer than eight, of any number of ranks
/// above one; then of any device and format by that kind of link, with the same ranks and with any;
/// then of all rows that were predicted from what these were (the band then holds that of each kind
/// of link of which there are eight), and if all of those are of one rank, the subject says it.
/// Where no described model was measured, of rows by the laws, and the subject says so. None: there
/// is no such row.
std::optional<KnownAccuracy> known_accuracy(const std::vector<KnownErrors>& all,
                                            const PredictionKind& kind);

/// What accuracy.csv says of the kind of a scenario's predictions; none where it says nothing, and
/// where what they are made from is doubtful (measurement_doubts.hpp), and where no such devices
/// are known to be joined by such a link (known_joins.hpp).
std::optional<KnownAccuracy> accuracy_of(const Scenario& scenario, const std::optional<Fit>& fit,
                                         bool sharded = false);

/// That the catalogue has no accuracy.csv, so that no prediction has a band; nothing where it has.
std::vector<std::string> lost_accuracy_notes();

/// What a prediction is made from, and how far such predictions were off; none: nobody knows.
struct Knowledge {
  FittedOn from = FittedOn::laws;
  std::optional<KnownAccuracy> accuracy{};            ///< of steps under which ranks keep all
  std::optional<KnownAccuracy> accuracy_of_shards{};  ///< of FSDP's steps
  /// Was the strength of interference fitted to a row whose all-reduces went over NICs?
  bool fitted_over_nics = false;
  /// That strength; 1 where no row was fitted.
  double interference = 1;

  /// None where no step under this strategy was measured.
  const std::optional<KnownAccuracy>& about(Strategy strategy) const;
};
/// Without an accuracy where the fit is to rows that were measured of something else
/// (carried_fit.hpp).
Knowledge knowledge_of(const Scenario& scenario, const CalibratedModel& priced);

/// Two sentences: "Predictions of this kind were 1.8 % off in the median (9 in 10 within 4.6 %) on
/// 23 measured rows of 4 setups: h100-sxm, nvlink, 2 to 8 ranks, nothing fitted. Nine in ten of
/// these steps took 0.97 to 1.05 times what was predicted."
std::string sentence(const KnownAccuracy& accuracy);
/// Those of each kind of steps among these strategies; "" where nothing is known of any.
std::string sentences(const Knowledge& knowledge, const std::vector<Strategy>& strategies);

}  // namespace ddpsim
