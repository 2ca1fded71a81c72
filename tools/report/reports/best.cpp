#include "tools/report/reports/best.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

bool sorts(const Field& field) {
  const bool number = field.kind == ValueKind::real || field.kind == ValueKind::whole;
  return number && field.better != Better::neither;
}

bool is_named(const Field& field, const std::string& name) {
  return field.name == name || field.name == name + "_ms" || field.name == name + "_bytes";
}

bool is_cost(const Field& field) {
  return field.name == fields::cost_per_billion_tokens.name ||
         field.name == fields::cost_per_million_samples.name;
}

/// What a point's cluster is called: no other key has a price.
std::string name_of_cluster(const PricedPoint& point) {
  std::vector<Setting> of_cluster;
  std::ranges::copy_if(point.settings, std::back_inserter(of_cluster),
                       [](const Setting& setting) { return touches(setting, "cluster"); });
  return short_label(of_cluster);
}

}  // namespace

const Field& best_field(const std::string& name) {
  std::vector<std::string_view> known;
  for (const Field& field : run_columns()) {
    if (!sorts(field)) continue;
    if (is_named(field, name)) return field;
    known.push_back(field.name);
  }
  throw InputError(fmt::format("--best {}: no figure to sort by; known: {}", name.substr(0, 40),
                               fmt::join(known, ", ")));
}

bool goes_before(const Field& field, const FieldValue& a, const FieldValue& b) {
  if (a.is_nothing() || b.is_nothing()) return !a.is_nothing() && b.is_nothing();
  const double one = a.number().value_or(0), other = b.number().value_or(0);
  return field.better == Better::high ? one > other : one < other;
}

std::string why_no_best(const Field& field, const std::vector<PricedPoint>& points) {
  if (!is_cost(field) || points.empty()) return "";
  std::set<std::string> currencies;
  for (const PricedPoint& point : points)
    if (!point.currency.empty()) currencies.insert(point.currency);
  if (currencies.empty())
    return fmt::format(
        "no row is the best by {}: no cluster here has a price: give each cluster its price, such "
        "as 2 USD/h (cluster.price)",
        field.name);
  if (currencies.size() == 1) return "";
  return fmt::format(
      "no row is the best by {}: prices are in {}, which are not converted: give cluster.price in "
      "one currency",
      field.name, fmt::join(currencies, " and "));
}

std::string unpriced_clusters(const Field& field, const std::vector<PricedPoint>& points) {
  const auto has_price = [](const PricedPoint& point) { return !point.currency.empty(); };
  if (!is_cost(field) || std::ranges::none_of(points, has_price)) return "";
  constexpr std::size_t most_named = 8;
  std::vector<std::string> names;
  std::size_t more = 0;
  std::set<std::string> seen;
  for (const PricedPoint& point : points) {
    if (has_price(point)) continue;
    std::string name = name_of_cluster(point);
    if (!seen.insert(name).second) continue;
    if (names.size() < most_named)
      names.push_back(std::move(name));
    else
      ++more;
  }
  if (more > 0) names.push_back(fmt::format("{} more", more));
  return enumerated(names);
}

std::vector<std::string> unpriced_notes(const Field& field,
                                        const std::vector<PricedPoint>& points) {
  const std::string clusters = unpriced_clusters(field, points);
  if (clusters.empty()) return {};
  return {fmt::format("the best by {} is of the clusters that have a price; give these one too: {}",
                      field.name, clusters)};
}

std::string sorted_text(const Field& field) {
  return fmt::format("sorted by {}, the {} first", field.name,
                     field.better == Better::high ? "highest" : "lowest");
}

}  // namespace ddpsim
