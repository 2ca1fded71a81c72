#include "tools/study/known_accuracy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "model/base/statistics.hpp"
#include "model/cluster/deciding_link.hpp"
#include "model/cost/interference.hpp"
#include "model/parallel/passes_of.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"
#include "tools/study/carried_fit.hpp"
#include "tools/study/known_joins.hpp"
#include "tools/study/measurement_doubts.hpp"
#include "tools/study/names.hpp"
#include "tools/study/score.hpp"

namespace ddpsim {
namespace {

/// Fewer rows say little of nine in ten.
constexpr std::size_t enough_rows = 8;
/// A band leaves out at most one row in so many at either end.
constexpr std::size_t rows_at_each_end = 20;

bool is_fitted_on(const Measured& measured, Strategy strategy) {
  const auto is_it = [&](const MeasuredRow& row) { return row.strategy == strategy; };
  return std::find(measured.calibrate_on.begin(), measured.calibrate_on.end(), strategy) !=
             measured.calibrate_on.end() &&
         std::any_of(measured.rows.begin(), measured.rows.end(), is_it);
}

FittedOn fitted_on(const Scenario& scenario, const std::optional<Fit>& fit) {
  if (fit && fit->rows > 0) {
    for (const Strategy strategy : scenario.measured->calibrate_on)
      if (shards(strategy) && is_fitted_on(*scenario.measured, strategy)) return FittedOn::sharded;
    if (is_fitted_on(*scenario.measured, Strategy::overlap)) return FittedOn::both;
    return is_fitted_on(*scenario.measured, Strategy::none) ? FittedOn::none : FittedOn::naive;
  }
  if (scenario.times.forward || scenario.times.backward) return FittedOn::none;
  return scenario.described && !scenario.cluster.device.synchronous ? FittedOn::described
                                                                    : FittedOn::laws;
}

/// "2 ranks", "2 to 8 ranks".
std::string ranks_text(const std::set<int>& ranks) {
  const int low = *ranks.begin(), high = *ranks.rbegin();
  if (low == high) return fmt::format("{} rank{}", low, low == 1 ? "" : "s");
  return fmt::format("{} to {} ranks", low, high);
}

std::string fitted_text(FittedOn fitted) {
  switch (fitted) {
    case FittedOn::laws:
      return "nothing fitted";
    case FittedOn::none:
      return "the step without communication fitted";
    case FittedOn::naive:
      return "the naive step fitted";
    case FittedOn::both:
      return "the naive and the overlap step fitted";
    case FittedOn::sharded:
      return "a sharded step fitted";
    case FittedOn::calibration:
      return "from a calibration of the machine";
    case FittedOn::profile:
      return "from a profile of the model";
    case FittedOn::described:
      return "described, nothing measured";
  }
  return "";
}

/// "h100-sxm", or how many there are.
std::string some_of(const std::set<std::string>& names, std::string_view what) {
  constexpr std::size_t most_named = 3;
  if (names.size() <= most_named) return enumerated({names.begin(), names.end()});
  return fmt::format("{} kinds of {}", names.size(), what);
}

/// ", none of them on h100-sxm,": how many of the rows are of this device, unless all are.
std::string on_device(const std::vector<const KnownErrors*>& chosen, const std::string& device) {
  std::size_t rows = 0, here = 0;
  for (const KnownErrors* each : chosen) {
    rows += each->errors.size();
    if (each->device == device) here += each->errors.size();
  }
  if (here == rows) return "";
  const std::string name = device == "inline" ? "the scenario's own device" : device;
  if (here == 0) return fmt::format(", none of them on {},", name);
  return fmt::format(", {} of the {} rows on {},", here, rows, name);
}

/// "; they compute in fp32 and tf32, this scenario in bf16": that no row, or fewer than of another
/// format, are of the scenario's; "" if that is not so, or a format is not known.
std::string in_other_formats(const std::vector<const KnownErrors*>& chosen,
                             std::optional<DType> compute) {
  std::map<DType, std::size_t> rows_in;
  std::size_t rows = 0, most = 0;
  for (const KnownErrors* each : chosen) {
    rows += each->errors.size();
    if (each->compute) most = std::max(most, rows_in[*each->compute] += each->errors.size());
  }
  if (!compute || rows_in.empty()) return "";
  const auto same = rows_in.find(*compute);
  const std::size_t here = same == rows_in.end() ? 0 : same->second;
  if (here == most) return "";
  if (here > 0)
    return fmt::format("; {} of the {} rows compute in {}, as this scenario does", here, rows,
                       name_of(*compute));
  std::vector<std::string> formats;
  for (const auto& of_format : rows_in) formats.emplace_back(name_of(of_format.first));
  return fmt::format("; they compute in {}, this scenario in {}", enumerated(formats),
                     name_of(*compute));
}

KnownAccuracy summary_of(const std::vector<const KnownErrors*>& chosen, std::string subject,
                         const PredictionKind& kind) {
  std::vector<double> errors, sizes;
  std::set<std::string> setups, devices, links;
  std::set<int> ranks;
  for (const KnownErrors* each : chosen) {
    for (const double error : each->errors) {
      errors.push_back(error);
      sizes.push_back(std::abs(error));
    }
    setups.insert(each->setup);
    devices.insert(each->device);
    if (!each->link.empty()) links.insert(each->link);
    ranks.insert(each->ranks);
  }
  KnownAccuracy accuracy{sizes.size(),
                         setups.size(),
                         quantile(sizes, 0.5),
                         quantile(sizes, 0.9),
                         band_of(errors),
                         std::move(subject),
                         on_device(chosen, kind.device),
                         some_of(devices, "device")};
  if (!links.empty()) accuracy.rows_of += ", " + some_of(links, "link");
  accuracy.rows_of += fmt::format(", {}, {}", ranks_text(ranks), fitted_text(chosen[0]->fitted)) +
                      in_other_formats(chosen, kind.compute);
  return accuracy;
}

/// A kind that nobody measured is known no better than the least known of those that were: its band
/// holds that of each kind of link of which there are enough rows.
void widen_to_least_known(KnownAccuracy& accuracy, const std::vector<const KnownErrors*>& chosen) {
  std::map<std::string, std::vector<double>> of_link;
  for (const KnownErrors* each : chosen)
    of_link[each->link].insert(of_link[each->link].end(), each->errors.begin(), each->errors.end());
  const Band of_all = accuracy.band;
  for (const auto& [link, errors] : of_link) {
    if (errors.size() < enough_rows) continue;
    const Band band = band_of(errors);
    accuracy.band.low = std::min(accuracy.band.low, band.low);
    accuracy.band.high = std::max(accuracy.band.high, band.high);
  }
  if (accuracy.band.low < of_all.low || accuracy.band.high > of_all.high)
    accuracy.band_of_all = of_all;
}

constexpr const char* all_kinds =
    "Too few rows of this kind were measured; predictions of all kinds";
constexpr const char* all_sharded =
    "Too few sharded steps of this kind were measured; predictions of all kinds of them";
constexpr const char* all_of_one_rank =
    "Too few rows of this kind were measured; predictions of steps of one rank, which "
    "do not communicate";

/// Is a row's number format another than that of the predicted step? Where one of them is not
/// known, nothing is known against the row.
bool is_known_to_differ(std::optional<DType> row, std::optional<DType> predicted) {
  return row && predicted && *row != *predicted;
}

/// The accuracy of rows that were predicted from the same; none: there is no such row.
std::optional<KnownAccuracy> accuracy_of_kind(const std::vector<KnownErrors>& all,
                                              const PredictionKind& kind) {
  const auto device = [&](const KnownErrors& each) { return each.device == kind.device; };
  const auto link = [&](const KnownErrors& each) { return each.link == kind.link; };
  const auto ranks = [&](const KnownErrors& each) { return each.ranks == kind.ranks; };
  const auto of_this_kind = [&](const KnownErrors& each) {
    return device(each) && link(each) && !is_known_to_differ(each.compute, kind.compute);
  };
  struct Wanted {
    std::function<bool(const KnownErrors&)> includes;
    const char* subject;
  };
  const char* of_kind =
      kind.sharded ? "Predictions of sharded steps of this kind" : "Predictions of this kind";
  const char* of_link = kind.sharded      ? "Predictions of sharded steps over such a link"
                        : kind.ranks == 1 ? "Predictions of one rank"
                                          : "Predictions over such a link";
  const std::array<Wanted, 5> widening{{
      {[&](const KnownErrors& each) { return of_this_kind(each) && ranks(each); }, of_kind},
      {of_this_kind, of_kind},
      {[&](const KnownErrors& each) { return link(each) && ranks(each); }, of_link},
      {link, of_link},
      {[](const KnownErrors&) { return true; }, kind.sharded ? all_sharded : all_kinds},
  }};
  std::vector<const KnownErrors*> chosen;
  std::string subject;
  for (const Wanted& wanted : widening) {
    chosen.clear();
    subject = wanted.subject;
    std::size_t rows = 0;
    for (const KnownErrors& each : all)
      if (each.fitted == kind.fitted && each.sharded == kind.sharded && wanted.includes(each)) {
        chosen.push_back(&each);
        rows += each.errors.size();
      }
    if (rows >= enough_rows) break;
  }
  if (chosen.empty()) return std::nullopt;
  const bool of_one_rank =
      std::ranges::all_of(chosen, [](const KnownErrors* each) { return each->ranks == 1; });
  const bool of_all_kinds = (subject == all_kinds || subject == all_sharded) && !of_one_rank;
  if (subject == all_kinds && of_one_rank) subject = all_of_one_rank;
  KnownAccuracy accuracy = summary_of(chosen, std::move(subject), kind);
  if (of_all_kinds) widen_to_least_known(accuracy, chosen);
  return accuracy;
}

/// What the catalogue says, read once: a sweep asks at each of its points, on several threads.
const std::vector<KnownErrors>& all_known_errors() {
  static std::mutex mutex;
  static std::map<std::filesystem::path, std::vector<KnownErrors>> read;
  const std::lock_guard lock(mutex);
  const std::filesystem::path folder = catalogue_folder();
  auto known = read.find(folder);
  if (known == read.end()) known = read.emplace(folder, read_known_errors()).first;
  return known->second;
}

}  // namespace

FittedOn known_from(const Scenario& scenario, const std::optional<Fit>& fit) {
  if (!has_shapes(scenario.workload) ||
      (scenario.described && has_measured_kernels(scenario.workload)))
    return FittedOn::profile;
  if (scenario.cluster.calibration) return FittedOn::calibration;
  return fitted_on(scenario, fit);
}

std::string_view knowledge_text(FittedOn from) {
  switch (from) {
    case FittedOn::laws:
      return "laws";
    case FittedOn::none:
      return "step without communication";
    case FittedOn::naive:
      return "naive step";
    case FittedOn::both:
      return "naive and overlap steps";
    case FittedOn::sharded:
      return "sharded step";
    case FittedOn::calibration:
      return "calibration";
    case FittedOn::profile:
      return "profile";
    case FittedOn::described:
      return "described model";
  }
  return "";
}

std::optional<PredictionKind> kind_of(const Scenario& scenario, const std::optional<Fit>& fit) {
  const int ranks = scenario.cluster.ranks();
  const FittedOn from = known_from(scenario, fit);
  const bool of_the_machine = from == FittedOn::profile || from == FittedOn::calibration;
  if (of_the_machine != scenario.cluster.device.synchronous) return std::nullopt;
  const std::optional<DType> compute = main_format(scenario.workload);
  if (of_the_machine)
    return PredictionKind{"cpu", ranks == 1 ? "" : "ethernet", ranks, from, compute};
  return PredictionKind{
      scenario.cluster.device.name,
      ranks == 1 ? "" : std::string(name_of(deciding_link(scenario.cluster).kind)), ranks, from,
      compute};
}

Band band_of(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  std::vector<double> factors;
  for (const double error : errors) factors.push_back(1 / (1 + error));
  std::sort(factors.begin(), factors.end());
  const std::size_t left_out = factors.size() / rows_at_each_end;
  return {factors[left_out], factors[factors.size() - 1 - left_out]};
}

std::optional<KnownAccuracy> known_accuracy(const std::vector<KnownErrors>& all,
                                            const PredictionKind& kind) {
  auto found = accuracy_of_kind(all, kind);
  if (found || kind.fitted != FittedOn::described) return found;
  PredictionKind by_laws = kind;
  by_laws.fitted = FittedOn::laws;
  found = accuracy_of_kind(all, by_laws);
  if (found)
    found->subject =
        kind.sharded ? "No sharded step of a described model was measured; predictions of those "
                       "of other models by the laws"
                     : "No step of a described model was measured; predictions of other models by "
                       "the laws";
  return found;
}

std::optional<KnownAccuracy> accuracy_of(const Scenario& scenario, const std::optional<Fit>& fit,
                                         bool sharded) {
  const bool timed = scenario.times.forward || scenario.times.backward;
  const bool fitted = fit && (fit->rows > 0 || timed);
  if (fitted && !fit->notes.empty()) return std::nullopt;  // it is not of their kind
  if (!measurement_doubts(scenario).empty()) return std::nullopt;
  // No measured job ran on such nodes.
  if (!scenario.cluster.ranks_per_node.equal()) return std::nullopt;
  // Nothing is known of devices joined by a link that they cannot have: nobody has measured such a
  // cluster.
  if (!scenario.cluster.device.synchronous && scenario.cluster.ranks_per_node.largest() > 1 &&
      !is_known_to_join(scenario.cluster.intra_node, scenario.cluster.device))
    return std::nullopt;
  auto kind = kind_of(scenario, fit);
  if (!kind) return std::nullopt;
  if (sharded) {
    Training training = scenario.training;
    training.strategy = Strategy::fsdp;
    kind->sharded = true;
    kind->compute = main_format(passes_of(scenario.workload, training));
  }
  auto accuracy = known_accuracy(all_known_errors(), *kind);
  if (accuracy) accuracy->host = unknown_host(scenario, fit);
  return accuracy;
}

std::vector<std::string> lost_accuracy_notes() {
  const std::string why = why_no_known_errors();
  if (why.empty()) return {};
  return {fmt::format("{}: how far predictions are off is not known, and no step has a band; {}",
                      why, how_to_know_errors)};
}

Knowledge knowledge_of(const Scenario& scenario, const CalibratedModel& priced) {
  const auto known = [&](bool sharded) {
    return priced.others.empty() ? accuracy_of(scenario, priced.fit, sharded) : std::nullopt;
  };
  return {known_from(scenario, priced.fit), known(false), known(true),
          priced.fit && over_nics(scenario.cluster) && fits_interference_over_nics(scenario),
          priced.fit ? priced.fit->interference : 1};
}

const std::optional<KnownAccuracy>& Knowledge::about(Strategy strategy) const {
  static const std::optional<KnownAccuracy> nothing;
  switch (known_by(strategy)) {
    case KnownBy::replicated_steps:
      return accuracy;
    case KnownBy::sharded_steps:
      return accuracy_of_shards;
    case KnownBy::none:
      return nothing;
  }
  return nothing;
}

std::string sentences(const Knowledge& knowledge, const std::vector<Strategy>& strategies) {
  std::string text;
  for (const KnownBy kind : {KnownBy::replicated_steps, KnownBy::sharded_steps}) {
    const auto found = std::ranges::find(strategies, kind, known_by);
    if (found == strategies.end() || !knowledge.about(*found)) continue;
    text += (text.empty() ? "" : " ") + sentence(*knowledge.about(*found));
  }
  return text;
}

std::string sentence(const KnownAccuracy& accuracy) {
  const bool all = accuracy.rows < rows_at_each_end;
  const Band of_rows = accuracy.band_of_all.value_or(accuracy.band);
  const std::string took =
      accuracy.rows == 1 ? fmt::format("That step took {:.2f}", accuracy.band.low)
                         : fmt::format("{} of these steps took {:.2f} to {:.2f}",
                                       all ? "All" : "Nine in ten", of_rows.low, of_rows.high);
  const std::string least = accuracy.band_of_all
                                ? fmt::format(
                                      " Over one kind of link alone it was as low as {:.2f} and as "
                                      "high as {:.2f}: that is the band here.",
                                      accuracy.band.low, accuracy.band.high)
                                : "";
  std::string host;
  if (accuracy.host)
    host = fmt::format(
        " All-reduces are assumed to move {} on the bus through the host's memory, which rows "
        "whose "
        "files say their host's rate do not bear out: bands hold steps of hosts of {:.1f} to "
        "{:.1f} "
        "GB/s besides.",
        to_string(accuracy.host->rates.assumed),
        accuracy.host->rates.slowest.bytes_per_second * 1e-9,
        accuracy.host->rates.quickest.bytes_per_second * 1e-9);
  return fmt::format(
      "{}{} were {:.1f} % off in the median (9 in 10 within {:.1f} %) on {} "
      "measured row{} of {} setup{}: {}. {} times what was predicted.{}{}",
      accuracy.subject, accuracy.on_device, 100 * accuracy.median_error,
      100 * accuracy.ninth_decile_error, accuracy.rows, accuracy.rows == 1 ? "" : "s",
      accuracy.setups, accuracy.setups == 1 ? "" : "s", accuracy.rows_of, took, least, host);
}

}  // namespace ddpsim
