#include "tools/study/known_accuracy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/cluster/deciding_link.hpp"
#include "tools/study/score.hpp"

namespace ddpsim {
namespace {

/// Fewer rows say little of nine in ten.
constexpr std::size_t enough_rows = 8;

bool is_fitted_on(const Measured& measured, Strategy strategy) {
  const auto is_it = [&](const MeasuredRow& row) { return row.strategy == strategy; };
  return std::find(measured.calibrate_on.begin(), measured.calibrate_on.end(), strategy) !=
             measured.calibrate_on.end() &&
         std::any_of(measured.rows.begin(), measured.rows.end(), is_it);
}

FittedOn fitted_on(const Scenario& scenario, const std::optional<Fit>& fit) {
  if (fit && fit->rows > 0) {
    if (is_fitted_on(*scenario.measured, Strategy::overlap)) return FittedOn::both;
    return is_fitted_on(*scenario.measured, Strategy::none) ? FittedOn::none : FittedOn::naive;
  }
  return scenario.times.forward || scenario.times.backward ? FittedOn::none : FittedOn::laws;
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
    case FittedOn::calibration:
      return "from a calibration of the machine";
    case FittedOn::profile:
      return "from a profile of the model";
  }
  return "";
}

/// "h100-sxm", or how many there are.
std::string some_of(const std::set<std::string>& names, std::string_view what) {
  constexpr std::size_t most_named = 3;
  if (names.size() <= most_named) return fmt::format("{}", fmt::join(names, " and "));
  return fmt::format("{} kinds of {}", names.size(), what);
}

KnownAccuracy summary_of(const std::vector<const KnownErrors*>& chosen, std::string subject) {
  std::vector<double> sizes;
  std::set<std::string> setups, devices, links;
  std::set<int> ranks;
  for (const KnownErrors* each : chosen) {
    for (const double error : each->errors) sizes.push_back(std::abs(error));
    setups.insert(each->setup);
    devices.insert(each->device);
    if (!each->link.empty()) links.insert(each->link);
    ranks.insert(each->ranks);
  }
  KnownAccuracy accuracy{sizes.size(),         setups.size(),      quantile(sizes, 0.5),
                         quantile(sizes, 0.9), std::move(subject), some_of(devices, "device")};
  if (!links.empty()) accuracy.rows_of += ", " + some_of(links, "link");
  accuracy.rows_of += fmt::format(", {}, {}", ranks_text(ranks), fitted_text(chosen[0]->fitted));
  return accuracy;
}

}  // namespace

std::optional<PredictionKind> kind_of(const Scenario& scenario, const std::optional<Fit>& fit) {
  const int ranks = scenario.cluster.ranks();
  const bool profiled = !has_shapes(scenario.workload);
  if (scenario.cluster.device.synchronous) {
    if (!profiled && !scenario.cluster.calibration) return std::nullopt;
    return PredictionKind{"cpu", ranks == 1 ? "" : "ethernet", ranks,
                          profiled ? FittedOn::profile : FittedOn::calibration};
  }
  if (profiled || scenario.cluster.calibration) return std::nullopt;
  return PredictionKind{
      scenario.cluster.device.name,
      ranks == 1 ? "" : std::string(name_of(deciding_link(scenario.cluster).kind)), ranks,
      fitted_on(scenario, fit)};
}

std::optional<KnownAccuracy> known_accuracy(const std::vector<KnownErrors>& all,
                                            const PredictionKind& kind) {
  const auto device = [&](const KnownErrors& each) { return each.device == kind.device; };
  const auto link = [&](const KnownErrors& each) { return each.link == kind.link; };
  const auto ranks = [&](const KnownErrors& each) { return each.ranks == kind.ranks; };
  struct Wanted {
    std::function<bool(const KnownErrors&)> includes;
    const char* subject;
  };
  const char* of_link =
      kind.ranks == 1 ? "Predictions of one rank" : "Predictions over such a link";
  const std::array<Wanted, 5> widening{{
      {[&](const KnownErrors& each) { return device(each) && link(each) && ranks(each); },
       "Predictions of this kind"},
      {[&](const KnownErrors& each) { return device(each) && link(each); },
       "Predictions of this kind"},
      {[&](const KnownErrors& each) { return link(each) && ranks(each); }, of_link},
      {link, of_link},
      {[](const KnownErrors&) { return true; },
       "Too few rows of this kind were measured; predictions of all kinds"},
  }};
  std::vector<const KnownErrors*> chosen;
  std::string subject;
  for (const Wanted& wanted : widening) {
    chosen.clear();
    subject = wanted.subject;
    std::size_t rows = 0;
    for (const KnownErrors& each : all)
      if (each.fitted == kind.fitted && wanted.includes(each)) {
        chosen.push_back(&each);
        rows += each.errors.size();
      }
    if (rows >= enough_rows) break;
  }
  if (chosen.empty()) return std::nullopt;
  return summary_of(chosen, std::move(subject));
}

std::optional<KnownAccuracy> accuracy_of(const Scenario& scenario, const std::optional<Fit>& fit) {
  if (fit && !fit->notes.empty()) return std::nullopt;  // it is not of their kind
  const auto kind = kind_of(scenario, fit);
  return kind ? known_accuracy(read_known_errors(), *kind) : std::nullopt;
}

std::string sentence(const KnownAccuracy& accuracy) {
  return fmt::format(
      "{} were {:.1f} % off in the median (9 in 10 within {:.1f} %) on {} "
      "measured row{} of {} setup{}: {}.",
      accuracy.subject, 100 * accuracy.median_error, 100 * accuracy.ninth_decile_error,
      accuracy.rows, accuracy.rows == 1 ? "" : "s", accuracy.setups,
      accuracy.setups == 1 ? "" : "s", accuracy.rows_of);
}

}  // namespace ddpsim
