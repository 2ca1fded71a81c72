#include "tools/report/reports/best.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/reports/results.hpp"

namespace ddpsim {
namespace {

bool sorts(const Field& field) {
  const bool number = field.kind == ValueKind::real || field.kind == ValueKind::whole;
  return number && field.better != Better::neither;
}

bool is_named(const Field& field, const std::string& name) {
  return field.name == name || field.name == name + "_ms" || field.name == name + "_bytes";
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

std::string why_no_best(const Field& field, const std::set<std::string>& currencies) {
  const bool cost = field.name == fields::cost_per_billion_tokens.name ||
                    field.name == fields::cost_per_million_samples.name;
  if (!cost || currencies.size() < 2) return "";
  return fmt::format(
      "no row is the best by {}: prices are in {}, which are not converted: give cluster.price in "
      "one currency",
      field.name, fmt::join(currencies, " and "));
}

std::string sorted_text(const Field& field) {
  return fmt::format("sorted by {}, the {} first", field.name,
                     field.better == Better::high ? "highest" : "lowest");
}

}  // namespace ddpsim
