#include "tools/report/reports/headline.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/throughput_report.hpp"

namespace ddpsim {
namespace {

/// "481,126"; below a thousand with one digit behind the point.
std::string grouped(double value) {
  if (value < 1000) return fmt::format("{:.1f}", value);
  std::string text = fmt::format("{:.0f}", value);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string gib_text(double bytes) {
  return fmt::format("{:.3g} GiB", bytes / static_cast<double>(GiB.count));
}

HeadlineFigure rate_figure(const Outcome& outcome, const std::string& of) {
  if (const auto rate = outcome.rate())
    return {
        fmt::format("{} {}/s", grouped(*rate), outcome.tokens_per_second ? "tokens" : "samples"),
        "all ranks together: " + of};
  return {"samples/s unknown", "The workload does not say how large its batch is."};
}

HeadlineFigure cost_figure(const Outcome& outcome) {
  const std::string amount = outcome.tokens_per_second ? "a billion tokens" : "a million samples";
  if (outcome.cost)
    return {fmt::format("{:.2f} {}", *outcome.cost, outcome.currency), "the cost of " + amount};
  if (outcome.device_hours)
    return {fmt::format("{:.2f} GPU-hours", *outcome.device_hours),
            fmt::format("for {}; set cluster.price for the cost in money", amount)};
  return {"cost unknown", "It needs the size of the batch."};
}

HeadlineFigure memory_figure(const Outcome& outcome, Bytes device) {
  const std::string value = !outcome.fits   ? "memory unknown"
                            : *outcome.fits ? "fits in memory"
                                            : "does not fit in memory";
  if (!outcome.peak_bytes) return {value, "The peak of a rank is not known."};
  const std::string of = device > Bytes{} ? fmt::format(" of the {} of a device",
                                                        gib_text(static_cast<double>(device.count)))
                                          : "";
  return {value, fmt::format("{}{}{}, at the peak of a rank", outcome.fits ? "" : "at least ",
                             gib_text(*outcome.peak_bytes), of)};
}

}  // namespace

Outcome outcome_of(const std::vector<Field>& columns, const TableRow& row) {
  const auto value = [&](const Field& field) -> FieldValue {
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c].name == field.name) return row[c];
    return {};
  };
  Outcome outcome;
  outcome.tokens_per_second = value(fields::tokens_per_second).number();
  outcome.samples_per_second = value(fields::samples_per_second).number();
  const bool tokens = outcome.tokens_per_second.has_value();
  outcome.device_hours = value(tokens ? fields::device_hours_per_billion_tokens
                                      : fields::device_hours_per_million_samples)
                             .number();
  outcome.cost =
      value(tokens ? fields::cost_per_billion_tokens : fields::cost_per_million_samples).number();
  if (const FieldValue currency = value(fields::currency); currency.text() != nullptr)
    outcome.currency = *currency.text();
  const FieldValue fits = value(fields::fits_device);
  if (const bool* flag = std::get_if<bool>(&fits.held)) outcome.fits = *flag;
  outcome.peak_bytes = value(fields::peak_memory_bytes).number();
  return outcome;
}

Outcome outcome_of(const Scenario& scenario, const Result& result) {
  std::vector<Field> columns{fields::peak_memory_bytes};
  for (const Field* field : fields::of_throughput) columns.push_back(*field);
  Record record = throughput_record(scenario, result);
  record.add(fields::peak_memory_bytes, memory_of(scenario, result).peak.count);
  return outcome_of(columns, row_of(columns, record));
}

Headline headline_of(const Outcome& outcome, const std::string& of, Bytes device) {
  return {rate_figure(outcome, of), cost_figure(outcome), memory_figure(outcome, device)};
}

const Result& chief_of(const std::vector<Result>& results, Strategy asked) {
  if (shards(asked))
    for (const Result& each : results)
      if (each.step->training.strategy == asked) return each;
  const Result* chief = &results.front();
  for (const Result& each : results) {
    const Strategy strategy = each.step->training.strategy;
    if (strategy == Strategy::bucketed) return each;
    if (strategy == Strategy::none) continue;
    if (chief->step->training.strategy == Strategy::none ||
        each.step->metrics.step < chief->step->metrics.step)
      chief = &each;
  }
  return *chief;
}

}  // namespace ddpsim
