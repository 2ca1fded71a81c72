#include "tools/report/why_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/timeline/why.hpp"
#include "scenarios/reader/input_error.hpp"
#include "sim/predict/what_if.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_buckets_shown = 12;
constexpr double least_share_shown = 0.01;  ///< of a bucket's exposed time

std::string ms(Duration time) {
  return fmt::format("{:.3f}", in_ms(time));
}
std::string ms(Instant at) {
  return ms(at.time_since_epoch());
}

/// "h.11.mlp.weight +3": the first parameter of a bucket and how many more it has.
std::string contents(const Scenario& scenario, const Bucket& bucket) {
  const auto first = static_cast<std::size_t>(bucket.parameters.at(0));
  const std::string name = printable(scenario.workload.parameters[first].name);
  if (bucket.parameters.size() == 1) return name;
  return fmt::format("{} +{}", name, bucket.parameters.size() - 1);
}

/// "previous 2.100, gradients 1.250": the causes, the largest first.
std::string because(const ExposedBucket& bucket) {
  std::vector<Cause> causes(all_causes.begin(), all_causes.end());
  std::stable_sort(causes.begin(), causes.end(),
                   [&](Cause a, Cause b) { return bucket.by(a) > bucket.by(b); });
  std::string text;
  for (const Cause cause : causes)
    if (bucket.by(cause) > Duration::zero() &&
        (text.empty() || bucket.by(cause) >= scaled(bucket.times.exposed, least_share_shown)))
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(cause), ms(bucket.by(cause)));
  return text;
}

Duration sum_of(const std::vector<ExposedBucket>& buckets) {
  Duration sum{};
  for (const ExposedBucket& bucket : buckets) sum += bucket.times.exposed;
  return sum;
}

std::string buckets_text(const Comparison& comparison, const Step& step) {
  std::vector<ExposedBucket> exposed_buckets =
      why_exposed(step.schedule, step.timeline, step.metrics);
  const std::string label = strategy_label(step.training);
  const Duration all = exposed(step.metrics, comparison.none.metrics);
  const Duration of_buckets = sum_of(exposed_buckets);
  if (step.metrics.collectives == 0) return fmt::format("{}: nothing is reduced\n\n", label);
  std::string text = fmt::format(
      "{}: {} of {} buckets are exposed, {} ms; the step is {} ms longer than without "
      "communication\n",
      label, exposed_buckets.size(), step.schedule.buckets.size(), ms(of_buckets), ms(all));
  if (exposed_buckets.empty()) return text + "\n";
  std::stable_sort(exposed_buckets.begin(), exposed_buckets.end(),
                   [](const ExposedBucket& a, const ExposedBucket& b) {
                     return a.times.exposed > b.times.exposed;
                   });
  const std::size_t shown = std::min(exposed_buckets.size(), most_buckets_shown);
  Table table({"bucket", "size", "ready", "called", "launched", "previous", "start", "end",
               "exposed", "because"},
              Table::Last::text);
  Duration hidden_rows{};
  for (std::size_t i = 0; i < exposed_buckets.size(); ++i) {
    const ExposedBucket& each = exposed_buckets[i];
    if (i >= shown) {
      hidden_rows += each.times.exposed;
      continue;
    }
    const Bucket& bucket = step.schedule.buckets[each.bucket];
    table.add({fmt::format("{} {}", each.bucket, contents(comparison.scenario, bucket)),
               to_string(bucket.size), ms(each.times.ready), ms(each.called), ms(each.launched),
               each.previous == Instant{} ? "-" : ms(each.previous), ms(each.times.start),
               ms(each.times.end), ms(each.times.exposed), because(each)});
  }
  text += table.text();
  if (shown < exposed_buckets.size())
    text += fmt::format("and {} more, {} ms\n", exposed_buckets.size() - shown, ms(hidden_rows));
  return text + "\n";
}

std::string heading(Change change) {
  switch (change) {
    case Change::link_twice_as_fast:
      return "link x 2";
    case Change::no_latency:
      return "no latency";
    case Change::free_launch:
      return "free launch";
    case Change::no_interference:
      return "no interference";
    case Change::even_ranks:
      return "even ranks";
  }
  return "";
}

std::string changes_text(const Comparison& comparison) {
  std::vector<std::string> header{"step ms", "now"};
  std::vector<std::vector<std::string>> rows;
  for (const Step& step : comparison.compared) {
    rows.push_back({strategy_label(step.training), ms(step.metrics.step)});
    for (const WhatIf& each : what_if(comparison.priced.costs, step.training)) {
      if (rows.size() == 1) header.push_back(heading(each.change));
      rows.back().push_back(ms(each.step));
    }
  }
  Table table(header);
  for (std::vector<std::string>& row : rows) table.add(std::move(row));
  return table.text();
}

Json bucket_json(const ExposedBucket& bucket) {
  Json json;
  json["index"] = bucket.bucket;
  json["ready_ms"] = in_ms(bucket.times.ready);
  json["called_ms"] = in_ms(bucket.called);
  json["issued_ms"] = in_ms(bucket.issued);
  json["launched_ms"] = in_ms(bucket.launched);
  if (bucket.previous == Instant{})
    json["previous_end_ms"] = nullptr;
  else
    json["previous_end_ms"] = in_ms(bucket.previous);
  json["start_ms"] = in_ms(bucket.times.start);
  json["end_ms"] = in_ms(bucket.times.end);
  json["exposed_ms"] = in_ms(bucket.times.exposed);
  const auto key = [](Cause cause) {
    return cause == Cause::slowest_rank ? std::string("slowest_rank") : std::string(name_of(cause));
  };
  json["reason"] = key(bucket.cause);
  for (const Cause cause : all_causes) json["exposed_by_ms"][key(cause)] = in_ms(bucket.by(cause));
  return json;
}

}  // namespace

std::string why_text(const Comparison& comparison) {
  std::string text =
      "why (ms; an all-reduce is exposed while the compute stream stands still)\n"
      "  gradients     it began at once, or that would not have helped: its own length is the "
      "tail\n"
      "  turn          it was called later: buckets go in order, naive and flat after backward\n"
      "  previous      the collective before it had not ended\n"
      "  launch        the host had not launched it\n"
      "  slowest rank  another rank arrived later\n"
      "Exposed buckets and the longer step differ by interference, copies, hooks, and what "
      "earlier\n"
      "micro-batches and broadcasts wait for.\n\n";
  for (const Step& step : comparison.compared) text += buckets_text(comparison, step);
  return text + "what would remove it:\n" + changes_text(comparison);
}

std::vector<Json> why_json(const Comparison& comparison) {
  std::vector<Json> all;
  for (const Step& step : comparison.compared) {
    const std::vector<ExposedBucket> buckets =
        why_exposed(step.schedule, step.timeline, step.metrics);
    const Duration longer = exposed(step.metrics, comparison.none.metrics);
    Json json;
    json["exposed_in_buckets_ms"] = in_ms(sum_of(buckets));
    json["exposed_elsewhere_ms"] = in_ms(longer - sum_of(buckets));
    json["buckets"] = Json::array();
    for (const ExposedBucket& bucket : buckets) json["buckets"].push_back(bucket_json(bucket));
    json["what_if"] = Json::array();
    for (const WhatIf& each : what_if(comparison.priced.costs, step.training))
      json["what_if"].push_back({{"change", name_of(each.change)}, {"step_ms", in_ms(each.step)}});
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace ddpsim
