#include "tools/plan/plan_report.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/parallel/memory/peak_memory.hpp"
#include "tools/report/records/plan_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/best.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

using Order = std::vector<std::size_t>;  ///< candidates, by index

const Field* rate_field_of(const TrainingPlan& plan) {
  switch (plan.rate) {
    case PlannedRate::tokens:
      return &fields::tokens_per_second;
    case PlannedRate::samples:
      return &fields::samples_per_second;
    case PlannedRate::micro_batches:
      break;
  }
  return nullptr;
}

/// The cost of what is done, in money or, without a price, in hours of devices; null: the batch is
/// not known.
const Field* cost_field_of(const TrainingPlan& plan) {
  const bool priced = plan.scenario.price.has_value();
  switch (plan.rate) {
    case PlannedRate::tokens:
      return priced ? &fields::cost_per_billion_tokens : &fields::device_hours_per_billion_tokens;
    case PlannedRate::samples:
      return priced ? &fields::cost_per_million_samples : &fields::device_hours_per_million_samples;
    case PlannedRate::micro_batches:
      break;
  }
  return nullptr;
}

std::string sorted_by_rate(const TrainingPlan& plan) {
  if (const Field* rate = rate_field_of(plan)) return sorted_text(*rate);
  return "sorted by micro-batches a second, the highest first";
}

std::string memory_of_device(const TrainingPlan& plan) {
  const Bytes memory = plan.scenario.cluster.device.memory;
  return memory > Bytes{} ? to_string(memory) : "memory that is not known";
}

std::string candidate_band(const Record& figures) {
  const auto low = figures.find(fields::band_low_ms)->number();
  const auto high = figures.find(fields::band_high_ms)->number();
  return low && high ? fmt::format("{:.2f} to {:.2f}", *low, *high) : "no band";
}

std::vector<Field> best_columns(const TrainingPlan& plan) {
  std::vector<Field> columns{fields::planned_way, fields::gpus.with(Importance::most),
                             fields::batch.with(Importance::most), fields::step_ms};
  if (const Field* rate = rate_field_of(plan)) columns.push_back(rate->with(Importance::most));
  columns.insert(columns.end(),
                 {fields::mfu.with(Importance::little), fields::exposed_ms.with(Importance::little),
                  fields::peak_memory_bytes.with(Importance::much),
                  fields::peak_of_device.with(Importance::little)});
  if (const Field* cost = cost_field_of(plan)) columns.push_back(cost->with(Importance::much));
  columns.push_back(fields::band_in_words);
  return columns;
}

/// The first `most` of `order`.
Table best_table(const TrainingPlan& plan, const Order& order, std::size_t most) {
  Table table{best_columns(plan)};
  for (const std::size_t index : order) {
    if (table.rows.size() == most) break;
    const PlanCandidate& candidate = plan.candidates[index];
    Record row = candidate.figures;
    row.add(fields::planned_way, plan.ways[candidate.way].name)
        .add(fields::gpus, plan.sizes[candidate.size].ranks)
        .add(fields::band_in_words, candidate_band(candidate.figures));
    table.add(row);
  }
  for (const Field& field : {fields::mfu, fields::peak_of_device})
    drop_if_empty(table, table.index_of(field));
  return table;
}

Order quickest_of(const TrainingPlan& plan) {
  Order order(plan.simulated());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  return order;
}

/// "the 10 quickest of 24 that fit"; "the one that fits"
std::string first_text(const TrainingPlan& plan, std::size_t shown, const char* which) {
  const bool known = plan.candidates.front().verdict == Verdict::fits;
  if (plan.simulated() == 1) return known ? "the one that fits" : "the one that may fit";
  return fmt::format("the {} {} of {} that {}fit", shown, which, plan.simulated(),
                     known ? "" : "may ");
}

std::string price_of_plan_text(const TrainingPlan& plan) {
  const auto& price = plan.scenario.price;
  if (!price || cost_field_of(plan) == nullptr) return "";
  return fmt::format("cost in {}, at {:g} for an hour of each device", price->currency,
                     price->per_hour);
}

/// Those of one way on one number of GPUs, the smallest batch first.
using Group = std::vector<const PlanCandidate*>;

Group group_of(const TrainingPlan& plan, std::size_t size, std::size_t way) {
  Group group;
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.size == size && candidate.way == way) group.push_back(&candidate);
  std::ranges::stable_sort(group, {}, &PlanCandidate::batch);
  return group;
}

/// "batch 8 takes 92.1 GiB"
std::string memory_need(const PlanCandidate& candidate) {
  const std::string takes = fmt::format("takes {}", to_string(candidate.peak));
  return candidate.batch > 0 ? fmt::format("batch {} {}", candidate.batch, takes) : takes;
}

/// Why there is no more of a group among the first `shown` candidates.
std::string why_no_more(const TrainingPlan& plan, const Group& group, std::size_t shown) {
  std::vector<std::string> reasons;
  const PlanCandidate* best = nullptr;
  const PlanCandidate* unfit = nullptr;
  for (const PlanCandidate* each : group) {
    if (each->verdict == Verdict::refused) reasons.push_back("refused: " + each->error);
    if (each->verdict == Verdict::too_large && unfit == nullptr) unfit = each;
    if (each->is_simulated() && (best == nullptr || each->rate > best->rate)) best = each;
  }
  if (unfit != nullptr) reasons.insert(reasons.begin(), memory_need(*unfit));
  if (best != nullptr && shown > 0) {
    const double last = plan.candidates[shown - 1].rate;
    const bool is_shown = best < plan.candidates.data() + shown;
    if (!is_shown)
      reasons.push_back(fmt::format("at best {:.1f} % slower than the last above",
                                    100 * (1 - best->rate / last)));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

Table reasons_table(const TrainingPlan& plan, std::size_t shown) {
  Table table{{fields::planned_way, fields::gpus.with(Importance::most), fields::largest_batch}};
  if (const Field* rate = rate_field_of(plan))
    table.columns.push_back(
        rate->labelled(plan.rate == PlannedRate::tokens ? "best tokens/s" : "best samples/s"));
  table.columns.push_back(fields::fell_out);
  for (std::size_t way = 0; way < plan.ways.size(); ++way)
    for (std::size_t size = 0; size < plan.sizes.size(); ++size) {
      const Group group = group_of(plan, size, way);
      Record row;
      row.add(fields::planned_way, plan.ways[way].name).add(fields::gpus, plan.sizes[size].ranks);
      const PlanCandidate* best = nullptr;
      int largest = 0;
      for (const PlanCandidate* each : group) {
        if (!each->is_simulated()) continue;
        if (each->verdict == Verdict::fits) largest = std::max(largest, each->batch);
        if (best == nullptr || each->rate > best->rate) best = each;
      }
      row.add(fields::largest_batch, largest > 0 ? FieldValue(largest) : FieldValue());
      if (const Field* rate = rate_field_of(plan); rate != nullptr && best != nullptr)
        row.add(*rate, best->rate);
      table.add(row.add(fields::fell_out, why_no_more(plan, group, shown)));
    }
  drop_if_empty(table, table.index_of(fields::largest_batch));
  if (const Field* rate = rate_field_of(plan)) drop_if_empty(table, table.index_of(*rate));
  const auto any_is = [&](std::string_view what) {
    return std::ranges::any_of(
        plan.ways, [&](const PlannedWay& way) { return way.name.find(what) != std::string::npos; });
  };
  if (any_is(no_reshard))
    table.notes =
        "no reshard: training.reshard_after_forward: false, so that units stay gathered between "
        "the passes";
  if (any_is(checkpoints))
    table.notes += std::string(table.notes.empty() ? "" : "; ") +
                   "AC: workload.activation_checkpointing: full, so that blocks keep their input "
                   "alone and run "
                   "forward again";
  return table;
}

/// "36 combinations were tried: 24 fit 80 GiB (judged with 5 % and 512 MiB to spare); 12 take more,
/// and so would larger batches."
std::string counts_text(const TrainingPlan& plan) {
  const std::size_t all = plan.candidates.size();
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(plan.candidates, verdict, &PlanCandidate::verdict);
  };
  const auto verb = [](auto number, const char* of_one, const char* of_many) {
    return number == 1 ? of_one : of_many;
  };
  std::vector<std::string> parts;
  if (const auto fit = count(Verdict::fits); fit > 0)
    parts.push_back(fmt::format("{} {} {} (judged with {:g} % and {} to spare)", fit,
                                verb(fit, "fits", "fit"), memory_of_device(plan),
                                100 * memory_margin, to_string(context_memory)));
  if (const auto unknown = count(Verdict::unknown); unknown > 0)
    parts.push_back(fmt::format("of {} it is not known whether {}", unknown,
                                verb(unknown, "it fits", "they fit")));
  if (const auto large = count(Verdict::too_large); large > 0)
    parts.push_back(fmt::format("{} {} more{}, and so would larger batches", large,
                                verb(large, "takes", "take"),
                                parts.empty() ? " than " + memory_of_device(plan) : ""));
  if (const auto refused = count(Verdict::refused); refused > 0)
    parts.push_back(fmt::format("{} {} refused", refused, verb(refused, "is", "are")));
  return fmt::format("{} combination{} tried: {}.", all, all == 1 ? " was" : "s were",
                     fmt::join(parts, "; "));
}

/// `workload: {batch: 4}`, a line for each part of the scenario.
std::string snippet_of(const PlanCandidate& candidate) {
  std::map<std::string, std::vector<std::string>> parts;
  for (const Setting& setting : candidate.settings) {
    const std::size_t dot = setting.key.find('.');
    parts[setting.key.substr(0, dot)].push_back(
        fmt::format("{}: {}", setting.key.substr(dot + 1), setting.value));
  }
  std::string text;
  for (const auto& [part, keys] : parts)
    text += fmt::format("{}: {{{}}}\n", part, fmt::join(keys, ", "));
  return text;
}

/// "64 GPUs, fsdp, batch 4"
std::string candidate_text(const TrainingPlan& plan, const PlanCandidate& candidate) {
  const int ranks = plan.sizes[candidate.size].ranks;
  return fmt::format("{} GPU{}, {}{}", ranks, ranks == 1 ? "" : "s", plan.ways[candidate.way].name,
                     candidate.batch > 0 ? fmt::format(", batch {}", candidate.batch) : "");
}

std::string snippets_text(const TrainingPlan& plan) {
  if (plan.simulated() == 0) return "";
  const auto lines = [&](const char* which, std::size_t index) {
    const PlanCandidate& candidate = plan.candidates[index];
    return fmt::format("# the {}: {}\n{}", which, candidate_text(plan, candidate),
                       snippet_of(candidate));
  };
  const std::size_t cheapest = plan.cheapest().front();
  std::string text = "keys for the scenario, beside those that it has:\n\n";
  if (cheapest == 0)
    return text + lines(plan.sizes.size() > 1 ? "quickest and cheapest" : "quickest", 0);
  return text + lines("quickest", 0) + "\n" + lines("cheapest", cheapest);
}

/// How far off steps of the largest size were, if some of those simulated have a band; and which
/// have none.
std::string accuracy_of_plan(const TrainingPlan& plan) {
  bool any_band = false;
  std::vector<std::string> unknown;
  for (std::size_t index = 0; index < plan.simulated(); ++index) {
    const PlanCandidate& candidate = plan.candidates[index];
    const Strategy strategy = plan.ways[candidate.way].strategy;
    any_band = any_band || !candidate.figures.find(fields::band_low_ms)->is_nothing();
    if (!has_band(strategy) && std::ranges::find(unknown, name_of(strategy)) == unknown.end())
      unknown.emplace_back(name_of(strategy));
  }
  std::string text;
  if (const auto& accuracy = plan.knowledge.accuracy; accuracy && any_band)
    text = (plan.sizes.size() > 1 ? "Of the largest number of GPUs: " : "") + sentence(*accuracy);
  if (!unknown.empty()) text += (text.empty() ? "" : " ") + no_band_text(unknown);
  return text;
}

}  // namespace

std::string nothing_fits_text(const TrainingPlan& plan) {
  if (plan.simulated() > 0) return "";
  const PlanCandidate* least = nullptr;
  for (const PlanCandidate& each : plan.candidates)
    if (each.verdict == Verdict::too_large && (least == nullptr || each.peak < least->peak))
      least = &each;
  return fmt::format(
      "no combination fits {}: the least is {} by {}; try "
      "more GPUs under fsdp, or another device (--device)",
      memory_of_device(plan), to_string(least->peak), candidate_text(plan, *least));
}

Page plan_page(const TrainingPlan& plan, std::size_t most) {
  const Scenario& scenario = plan.scenario;
  std::vector<int> sizes;
  for (const PlannedSize& size : plan.sizes) sizes.push_back(size.ranks);
  Page page;
  page.add(Paragraph{fmt::format("{}\n{}: {:.1f} M parameters; {} of {} each; on {} of them\n{}{}",
                                 scenario.name, shown_name(scenario.workload.name, "model"),
                                 static_cast<double>(scenario.workload.elements()) * 1e-6,
                                 shown_name(scenario.cluster.device.name, "device"),
                                 memory_of_device(plan), fmt::join(sizes, ", "),
                                 sizes.size() > 1 ? "the largest: " : "",
                                 cluster_text(scenario, plan.knowledge))});
  const Order quickest = quickest_of(plan), cheapest = plan.cheapest();
  const std::size_t shown = std::min(most, quickest.size());
  if (shown > 0) {
    Table table = best_table(plan, quickest, most);
    table.title = fmt::format("{}, {}", first_text(plan, shown, "quickest"), sorted_by_rate(plan));
    table.notes = price_of_plan_text(plan);
    page.add(std::move(table));
  }
  const Field* cost = cost_field_of(plan);
  if (shown > 0 && cost != nullptr && plan.sizes.size() > 1 &&
      !std::equal(quickest.begin(), quickest.begin() + static_cast<std::ptrdiff_t>(shown),
                  cheapest.begin())) {
    Table table = best_table(plan, cheapest, most);
    table.title = fmt::format("{}, {}", first_text(plan, shown, "cheapest"), sorted_text(*cost));
    page.add(std::move(table));
  }
  Table reasons = reasons_table(plan, shown);
  reasons.title = "of each strategy and number of GPUs: what fits, and why no more is above";
  page.add(std::move(reasons));
  page.add(Paragraph{counts_text(plan)});
  page.add(Paragraph{shown > 0 ? accuracy_of_plan(plan) : ""});
  page.add(Verbatim{snippets_text(plan)});
  return page;
}

Record plan_record(const TrainingPlan& plan) {
  const Device& device = plan.scenario.cluster.device;
  const Field* rate = rate_field_of(plan);
  List candidates;
  for (const PlanCandidate& each : plan.candidates) candidates.emplace_back(each.figures);
  Record record;
  record.add(fields::format, "ddpsim.plan/1")
      .add(fields::scenario, plan.scenario.name)
      .add(fields::device_name, device.name)
      .add(fields::device_bytes,
           device.memory > Bytes{} ? FieldValue(device.memory.count) : FieldValue())
      .add(fields::sorted_by, rate != nullptr ? rate->name : "micro_batches_per_second")
      .add(fields::notes, list_of(plan.notes))
      .add(fields::candidates, std::move(candidates));
  return record;
}

Table plan_table(const TrainingPlan& plan) {
  Table table{candidate_columns()};
  for (const PlanCandidate& each : plan.candidates) table.add(each.figures);
  return table;
}

}  // namespace ddpsim
