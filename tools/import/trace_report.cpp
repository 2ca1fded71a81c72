#include "tools/import/trace_report.hpp"

#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

constexpr int most_shown = 30;  // of other collectives

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::unknown:
    case CollectiveKind::other:
    case CollectiveKind::none:
      return "collective of another kind";
  }
  return "?";
}

std::string ms(Duration time) {
  return fmt::format("{:.3f}", in_ms(time));
}

std::string said(std::int64_t amount) {
  return amount < 0 ? "?" : fmt::format("{}", amount);
}

/// Bytes of a bucket, of fp32 unless its type is told; -1 if its elements are not.
std::int64_t bytes_of(const FoundBucket& bucket) {
  if (bucket.elements < 0) return -1;
  return bucket.elements * size_of(gradient_type(bucket.type).value_or(DType::fp32)).count;
}

/// Collectives that carry no gradients, alike ones once, with how many there are in all steps.
using Key = std::tuple<CollectiveKind, std::int64_t, std::string, std::string>;
std::map<Key, std::size_t> others_of(const TraceFinding& finding) {
  std::map<Key, std::size_t> others;
  for (const FoundStep& step : finding.steps)
    for (const FoundCollective& each : step.others)
      ++others[{each.kind, each.elements, each.type, each.group}];
  return others;
}

std::string lines_of(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = fmt::format("\n{}\n", title);
  for (const std::string& line : lines) text += fmt::format("- {}\n", line);
  return text;
}

template <typename Get>
Duration median_of(const TraceFinding& finding, Get get) {
  std::vector<Duration> times;
  for (const FoundStep& step : finding.steps) times.push_back(get(step));
  return median(std::move(times));
}

std::string steps_text(const TraceFinding& finding) {
  Table table({"step", "step ms", "forward ms", "backward ms", "optimizer ms", "collectives ms",
               "overlapped ms", "exposed ms"});
  const auto add = [&](const std::string& name, const FoundStep& step) {
    table.add({name, ms(step.length), ms(step.forward), ms(step.backward),
               step.optimizer ? ms(*step.optimizer) : "?", ms(step.busy), ms(step.overlapped),
               ms(step.busy - step.overlapped)});
  };
  for (const FoundStep& step : finding.steps) add(step.name, step);
  if (finding.steps.size() > 1) {
    FoundStep middle;
    middle.length = median_of(finding, [](const FoundStep& step) { return step.length; });
    middle.forward = median_of(finding, [](const FoundStep& step) { return step.forward; });
    middle.backward = median_of(finding, [](const FoundStep& step) { return step.backward; });
    if (finding.steps.front().optimizer)
      middle.optimizer = median_of(
          finding, [](const FoundStep& step) { return step.optimizer.value_or(Duration{}); });
    middle.busy = median_of(finding, [](const FoundStep& step) { return step.busy; });
    middle.overlapped = median_of(finding, [](const FoundStep& step) { return step.overlapped; });
    add("median", middle);
  }
  return table.text() +
         "\ncollectives: some collective ran; overlapped: while it did, so did "
         "a compute kernel (an operator, on a CPU); exposed: the rest of it\n";
}

}  // namespace

std::string trace_text(const TraceFinding& finding, const FoundGradients& gradients,
                       const std::string& file) {
  std::string text = fmt::format("{}: {} events, {} whole step{}", file, finding.events,
                                 finding.steps.size(), finding.steps.size() == 1 ? "" : "s");
  if (!finding.device_name.empty()) text += fmt::format(", {}", finding.device_name);
  if (!finding.on_device) text += ", no device";
  if (finding.ranks > 0) text += fmt::format(", rank {} of {}", said(finding.rank), finding.ranks);
  if (!finding.backend.empty()) text += fmt::format(", {}", finding.backend);
  text += fmt::format("\n\n{}\n", steps_text(finding));

  Table table({"all-reduce", "elements", "tensors", "bytes", "launched ms", "started ms",
               "ended ms", "took ms"});
  for (std::size_t b = 0; b < gradients.buckets.size(); ++b) {
    const FoundBucket& bucket = gradients.buckets[b];
    table.add({fmt::format("{}", b), said(bucket.elements), fmt::format("{}", bucket.tensors),
               said(bytes_of(bucket)), ms(bucket.launched), ms(bucket.start), ms(bucket.end),
               ms(bucket.took)});
  }
  text +=
      fmt::format("gradients, strategy {}: medians over the steps, from the start of the step\n{}",
                  name_of(finding.strategy), table.text());
  if (const auto others = others_of(finding); !others.empty()) {
    Table rest({"other collectives", "a step", "elements", "type", "process group"},
               Table::Last::text);
    int shown = 0;
    for (const auto& [key, count] : others) {
      if (++shown > most_shown) break;
      rest.add({std::string(name_of(std::get<0>(key))),
                fmt::format("{:.3g}",
                            static_cast<double>(count) / static_cast<double>(finding.steps.size())),
                said(std::get<1>(key)), std::get<2>(key), std::get<3>(key)});
    }
    text += fmt::format("\n{}", rest.text());
  }
  return text + lines_of("notes", finding.notes) +
         lines_of("could not tell", finding.could_not_tell);
}

nlohmann::ordered_json trace_json(const TraceFinding& finding, const FoundGradients& gradients,
                                  const std::string& file) {
  using Json = nlohmann::ordered_json;
  Json json{{"format", "ddpsim.import/1"},
            {"kind", "torch-trace"},
            {"file", file},
            {"events", finding.events},
            {"strategy", name_of(finding.strategy)}};
  json["steps"] = Json::array();
  for (const FoundStep& step : finding.steps) {
    Json entry{{"name", step.name},
               {"step_ms", in_ms(step.length)},
               {"forward_ms", in_ms(step.forward)},
               {"backward_ms", in_ms(step.backward)}};
    if (step.optimizer) entry["optimizer_ms"] = in_ms(*step.optimizer);
    entry["collectives_ms"] = in_ms(step.busy);
    entry["overlapped_ms"] = in_ms(step.overlapped);
    entry["exposed_ms"] = in_ms(step.busy - step.overlapped);
    json["steps"].push_back(std::move(entry));
  }
  json["buckets"] = Json::array();
  for (const FoundBucket& bucket : gradients.buckets) {
    Json entry;
    if (bucket.elements >= 0) {
      entry["elements"] = bucket.elements;
      entry["bytes"] = bytes_of(bucket);
    }
    entry["tensors"] = bucket.tensors;
    if (!bucket.type.empty()) entry["type"] = bucket.type;
    entry["launched_ms"] = in_ms(bucket.launched);
    entry["start_ms"] = in_ms(bucket.start);
    entry["end_ms"] = in_ms(bucket.end);
    entry["took_ms"] = in_ms(bucket.took);
    json["buckets"].push_back(std::move(entry));
  }
  json["others"] = Json::array();
  for (const auto& [key, count] : others_of(finding)) {
    Json entry{{"collective", name_of(std::get<0>(key))}, {"count", count}};
    if (std::get<1>(key) >= 0) entry["elements"] = std::get<1>(key);
    entry["type"] = std::get<2>(key);
    entry["process_group"] = std::get<3>(key);
    json["others"].push_back(std::move(entry));
  }
  json["notes"] = finding.notes;
  json["could_not_tell"] = finding.could_not_tell;
  return json;
}

}  // namespace ddpsim
