#include "tools/import/trace_report.hpp"

#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/import/intervals.hpp"
#include "tools/report/records/field_kinds.hpp"
#include "tools/report/records/step_fields.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_shown = 30;  // of other collectives

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

std::string shown(std::int64_t amount) {
  return amount < 0 ? "?" : fmt::format("{}", amount);
}

/// Collectives that carry no gradients, alike ones once, with how many there are in all steps.
using KindKey = std::tuple<CollectiveKind, std::int64_t, std::string, std::string>;
std::map<KindKey, std::size_t> others_of(const TraceFinding& finding) {
  std::map<KindKey, std::size_t> others;
  for (const FoundStep& step : finding.steps)
    for (const FoundCollective& each : step.others)
      ++others[{each.kind, each.elements, each.type, each.group}];
  return others;
}

std::string lines_of(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = fmt::format("{}\n", title);
  for (const std::string& line : lines) text += fmt::format("- {}\n", line);
  return text;
}

template <typename Get>
Duration median_of(const TraceFinding& finding, Get get) {
  std::vector<Duration> times;
  for (const FoundStep& step : finding.steps) times.push_back(get(step));
  return median(std::move(times));
}

constexpr Look or_unknown{.pattern = "{:.3f}", .absent = "?"};

Table steps_table(const TraceFinding& finding) {
  constexpr Field name = fields::text_field("name", "step", "The step."),
                  optimizer = fields::optimizer_ms.with(or_unknown),
                  busy =
                      fields::ms_field("collectives_ms", "collectives ms", "Some collective ran."),
                  overlapped =
                      fields::ms_field("overlapped_ms", "overlapped ms",
                                       "Some collective ran, and so did a compute kernel.");
  Table table{{name, fields::step_ms, fields::forward_ms, fields::backward_ms, optimizer, busy,
               overlapped, fields::exposed_ms}};
  for (Field& column : table.columns)
    if (column.kind == ValueKind::real) column.look = or_unknown;
  const auto exposed_in = [](const FoundStep& step) { return step.busy - step.overlapped; };
  const auto add = [&](const std::string& which, const FoundStep& step, Duration exposed) {
    FieldValue update;
    if (step.optimizer) update = in_ms(*step.optimizer);
    table.add({which, in_ms(step.length), in_ms(step.forward), in_ms(step.backward), update,
               in_ms(step.busy), in_ms(step.overlapped), in_ms(exposed)});
  };
  for (const FoundStep& step : finding.steps) add(step.name, step, exposed_in(step));
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
    add("median", middle, median_of(finding, exposed_in));
  }
  return table;
}

Table buckets_table(const TraceFinding& finding, const FoundGradients& gradients) {
  constexpr Look whole{.absent = "?"}, if_it_ran{.pattern = "{:.3f}", .absent = "-"};
  constexpr Field index =
                      fields::count_field("index", "all-reduce", "Which all-reduce of the step."),
                  elements =
                      fields::count_field("elements", "elements", "Its elements.").with(whole),
                  tensors = fields::count_field("tensors", "tensors", "The gradients in it."),
                  bytes = fields::count_field("bytes", "bytes", "Their bytes.").with(whole),
                  launched = fields::ms_field("launched_ms", "launched ms", "When it was launched.")
                                 .with(fields::thousandths),
                  start =
                      fields::ms_field("start_ms", "started ms", "When it began.").with(if_it_ran),
                  end = fields::ms_field("end_ms", "ended ms", "When it ended.").with(if_it_ran),
                  took = fields::ms_field("took_ms", "took ms", "How long it ran.").with(if_it_ran);
  const auto known = [](std::int64_t amount) {
    return amount < 0 ? FieldValue() : FieldValue(amount);
  };
  Table table{{index, elements, tensors, bytes, launched, start, end, took}};
  table.title =
      fmt::format("gradients, strategy {}: medians over the steps, from the start of the step",
                  name_of(finding.strategy));
  for (std::size_t b = 0; b < gradients.buckets.size(); ++b) {
    const FoundBucket& bucket = gradients.buckets[b];
    const auto if_ran = [&](Duration time) {
      return bucket.ran ? FieldValue(in_ms(time)) : FieldValue();
    };
    table.add({b, known(bucket.elements), bucket.tensors, known(bytes_of(bucket)),
               in_ms(bucket.launched), if_ran(bucket.start), if_ran(bucket.end),
               if_ran(bucket.took)});
  }
  return table;
}

Table others_table(const TraceFinding& finding, const std::map<KindKey, std::size_t>& others) {
  constexpr Field kind = fields::text_field("collective", "other collectives", "What kind it is."),
                  count = fields::ratio_field("a_step", "a step", "How many a step has.",
                                              Better::neither, {"{:.3g}"}),
                  elements = fields::count_field("elements", "elements", "Its elements.")
                                 .with(Look{.absent = "?"}),
                  type = fields::text_field("type", "type", "Their type."),
                  group = fields::text_field("process_group", "process group", "Among which ranks.")
                              .with(Look{}.to_the_left());
  Table table{{kind, count, elements, type, group}};
  for (const auto& [key, number] : others) {
    if (table.rows.size() == most_shown) break;
    const auto& [which, size, type_name, group_name] = key;
    table.add({name_of(which),
               static_cast<double>(number) / static_cast<double>(finding.steps.size()),
               size < 0 ? FieldValue() : FieldValue(size), type_name, group_name});
  }
  return table;
}

constexpr std::array<const char*, step_parts> part_names{
    "forward", "backward", "finishing", "before the optimizer", "optimizer", "after the optimizer"};

/// Means over the steps, so that parts add up to the step.
std::array<PartTimes, step_parts> mean_parts(const TraceFinding& finding) {
  std::array<PartTimes, step_parts> means{};
  const auto count = static_cast<std::int64_t>(finding.steps.size());
  for (const FoundStep& step : finding.steps)
    for (std::size_t p = 0; p < step_parts; ++p)
      for (const auto member : {&PartTimes::length, &PartTimes::computing, &PartTimes::elsewhere,
                                &PartTimes::collectives, &PartTimes::idle, &PartTimes::waiting})
        means[p].*member = added(means[p].*member, step.parts[p].*member / count);
  return means;
}

Table parts_table(const TraceFinding& finding) {
  constexpr Field name =
                      fields::text_field("part", "where a step's time is", "The part of the step."),
                  length = fields::ms_field("ms", "ms", "How long it takes."),
                  share = fields::ratio_field("share", "share", "Of the step.", Better::neither,
                                              {"{:.1f} %"}),
                  computing =
                      fields::ms_field("computing_ms", "computing ms", "On the busiest stream."),
                  elsewhere = fields::ms_field("other_streams_ms", "other streams ms",
                                               "Only other streams computed or copied."),
                  collectives = fields::ms_field("collectives_ms", "collectives alone ms",
                                                 "Only collectives ran."),
                  idle = fields::ms_field("idle_ms", "idle ms", "The device had nothing to do."),
                  waiting = fields::ms_field("waiting_ms", "host waits ms",
                                             "The host waited for the device.");
  Table table{{name, length, share, computing, elsewhere, collectives, idle, waiting}};
  const auto parts = mean_parts(finding);
  PartTimes whole;
  for (const PartTimes& part : parts)
    for (const auto member : {&PartTimes::length, &PartTimes::computing, &PartTimes::elsewhere,
                              &PartTimes::collectives, &PartTimes::idle, &PartTimes::waiting})
      whole.*member = added(whole.*member, part.*member);
  const auto add = [&](const char* which, const PartTimes& part) {
    const double of_step =
        whole.length > Duration::zero() ? 100 * in_ms(part.length) / in_ms(whole.length) : 0;
    table.add({which, in_ms(part.length), of_step, in_ms(part.computing), in_ms(part.elsewhere),
               in_ms(part.collectives), in_ms(part.idle), in_ms(part.waiting)});
  };
  for (std::size_t p = 0; p < step_parts; ++p) add(part_names[p], parts[p]);
  add("step", whole);
  return table;
}

/// What a profile of the trace and its all-reduces stand for, as a share of the step, and what of
/// the step lies where.
std::string account_of(const TraceFinding& finding) {
  std::string text =
      "means over the steps; finishing: all-reduces and copies behind the last gradient; idle: ";
  text += finding.on_device ? "the device waited for the host to launch something\n"
                            : "no operator ran\n";
  const FoundStep middle = [&] {
    FoundStep step;
    step.length = median_of(finding, [](const FoundStep& each) { return each.length; });
    step.zero_grad = median_of(finding, [](const FoundStep& each) { return each.zero_grad; });
    step.loading = median_of(finding, [](const FoundStep& each) { return each.loading; });
    return step;
  }();
  text += fmt::format("accounted for: {:.1f} % of the median step", 100 * accounted(finding));
  if (middle.zero_grad > Duration::zero())
    text += fmt::format("; the host was {:.3f} ms in zero_grad", in_ms(middle.zero_grad));
  if (middle.loading > Duration::zero())
    text += fmt::format("; the host was {:.3f} ms loading data", in_ms(middle.loading));
  return text;
}

std::string head_of(const TraceFinding& finding, const std::string& file) {
  std::string text = fmt::format("{}: {} events, {} whole step{}", file, finding.events,
                                 finding.steps.size(), finding.steps.size() == 1 ? "" : "s");
  if (!finding.device_name.empty()) text += fmt::format(", {}", finding.device_name);
  if (!finding.on_device) text += ", no device";
  if (finding.ranks > 0) text += fmt::format(", rank {} of {}", shown(finding.rank), finding.ranks);
  if (!finding.backend.empty()) text += fmt::format(", {}", finding.backend);
  return text;
}

}  // namespace

Page trace_page(const TraceFinding& finding, const FoundGradients& gradients,
                const std::string& file) {
  Page page;
  page.add(Paragraph{head_of(finding, file)});
  page.add(steps_table(finding));
  page.add(
      Paragraph{"collectives: how long a collective ran; overlapped: the part of it in "
                "which a compute kernel (on a CPU, an operator) ran as well; exposed: "
                "the rest"});
  page.add(parts_table(finding));
  page.add(Paragraph{account_of(finding)});
  if (!gradients.buckets.empty()) page.add(buckets_table(finding, gradients));
  if (const auto others = others_of(finding); !others.empty())
    page.add(others_table(finding, others));
  page.add(Paragraph{lines_of("notes", finding.notes)});
  page.add(Paragraph{lines_of("could not tell", finding.could_not_tell)});
  return page;
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
  json["parts"] = Json::array();
  const auto parts = mean_parts(finding);
  for (std::size_t p = 0; p < step_parts; ++p)
    json["parts"].push_back({{"part", part_names[p]},
                             {"ms", in_ms(parts[p].length)},
                             {"computing_ms", in_ms(parts[p].computing)},
                             {"other_streams_ms", in_ms(parts[p].elsewhere)},
                             {"collectives_ms", in_ms(parts[p].collectives)},
                             {"idle_ms", in_ms(parts[p].idle)},
                             {"waiting_ms", in_ms(parts[p].waiting)}});
  json["accounted_share"] = accounted(finding);
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
    if (bucket.ran) {
      entry["start_ms"] = in_ms(bucket.start);
      entry["end_ms"] = in_ms(bucket.end);
      entry["took_ms"] = in_ms(bucket.took);
    }
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
