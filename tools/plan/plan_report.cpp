#include "tools/plan/plan_report.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/parallel/memory/peak_memory.hpp"
#include "tools/plan/ways.hpp"
#include "tools/report/records/plan_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/best.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/keys_text.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/said_notes.hpp"
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

/// "cost/1e9": below the table stands of what.
std::string_view short_label(const Field& cost) {
  return cost.label.substr(0, cost.label.find(' '));
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
  if (!low || !high) return "no band";
  // Four digits: the column stays beside the others.
  const int decimals = *high >= 1000 ? 0 : *high >= 100 ? 1 : 2;
  return fmt::format("{:.{}f} to {:.{}f}", *low, decimals, *high, decimals);
}

std::vector<Field> best_columns(const TrainingPlan& plan) {
  std::vector<Field> columns{fields::planned_way, fields::gpus.with(Importance::most),
                             fields::batch.with(Importance::most), fields::step_ms};
  if (const Field* rate = rate_field_of(plan)) columns.push_back(rate->with(Importance::most));
  columns.insert(columns.end(),
                 {fields::mfu.with(Importance::little), fields::exposed_ms.with(Importance::little),
                  fields::peak_memory_bytes.with(Importance::much),
                  fields::peak_of_device.with(Importance::little)});
  if (const Field* cost = cost_field_of(plan))
    columns.push_back(cost->labelled(short_label(*cost)));
  columns.push_back(fields::band_in_words.with(Importance::much));
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

/// Says what the column of costs holds.
std::string price_of_plan_text(const TrainingPlan& plan) {
  const Field* cost = cost_field_of(plan);
  if (cost == nullptr) return "";
  const std::string_view label = short_label(*cost);
  const std::string_view work =
      plan.rate == PlannedRate::tokens ? "a billion tokens" : "a million samples";
  const auto& price = plan.scenario.price;
  if (!price) return fmt::format("{}: hours of all devices, added up, for {}", label, work);
  return fmt::format("{}: what {} cost in {}, at {:g} for an hour of each device", label, work,
                     price->currency, price->per_hour);
}

/// Those of one way, the smallest number of GPUs first and, of one number, the smallest batch.
using Group = std::vector<const PlanCandidate*>;

Group group_of(const TrainingPlan& plan, std::size_t way) {
  Group group;
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.way == way) group.push_back(&candidate);
  std::ranges::stable_sort(group, {}, [&](const PlanCandidate* each) {
    return std::pair(plan.sizes[each->size].ranks, each->batch);
  });
  return group;
}

/// "batch 8 takes 85.4 GiB on 64 GPUs": of the smallest batch that does not fit on the largest
/// number of GPUs where one does not, which is where it takes the least; "" where all fit.
std::string memory_need(const TrainingPlan& plan, const Group& group) {
  const PlanCandidate* unfit = nullptr;
  bool is_alike = true;
  for (const PlanCandidate* each : group) {
    if (each->verdict != Verdict::too_large) continue;
    if (unfit != nullptr && unfit->size == each->size) continue;
    is_alike = is_alike && (unfit == nullptr || (unfit->batch == each->batch &&
                                                 to_string(unfit->peak) == to_string(each->peak)));
    unfit = each;
  }
  if (unfit == nullptr) return "";
  const std::string takes =
      fmt::format("takes {}{}", to_string(unfit->peak),
                  is_alike ? "" : fmt::format(" on {} GPUs", plan.sizes[unfit->size].ranks));
  return unfit->batch > 0 ? fmt::format("batch {} {}", unfit->batch, takes) : takes;
}

const PlanCandidate* best_of(const Group& group) {
  const PlanCandidate* best = nullptr;
  for (const PlanCandidate* each : group)
    if (each->is_simulated() && (best == nullptr || each->rate > best->rate)) best = each;
  return best;
}

/// Why there is no more of a group among the first `shown` candidates.
std::string why_no_more(const TrainingPlan& plan, const Group& group, std::size_t shown) {
  std::vector<std::string> reasons;
  if (std::string need = memory_need(plan, group); !need.empty())
    reasons.push_back(std::move(need));
  for (const PlanCandidate* each : group)
    if (each->verdict == Verdict::refused) add_each_once(reasons, {"refused: " + each->error});
  const PlanCandidate* best = best_of(group);
  if (best == nullptr && plan.ways[group.front()->way].between && group.front()->batch > 1)
    reasons.emplace_back("no smaller batch was tried");
  if (best != nullptr && shown > 0 && best >= plan.candidates.data() + shown)
    reasons.push_back(fmt::format("at best {:.1f} % slower",
                                  100 * (1 - best->rate / plan.candidates[shown - 1].rate)));
  return fmt::format("{}", fmt::join(reasons, "; "));
}

/// "2", or "2, from 32 GPUs 4": the largest batch that fits; "-" where none does. Of a way that is
/// tried with some batches alone, none of which fit, nothing is said.
std::string largest_batches(const TrainingPlan& plan, const Group& group) {
  std::map<int, int> largest;  // [number of GPUs]
  for (const PlanCandidate* each : group) {
    int& batch = largest[plan.sizes[each->size].ranks];
    if (each->verdict == Verdict::fits) batch = std::max(batch, each->batch);
  }
  std::string text;
  int before = -1;
  for (const auto& [ranks, batch] : largest) {
    const bool is_left_out = plan.ways[group.front()->way].between && batch == 0;
    if (batch == before || is_left_out) continue;
    const std::string shown = batch > 0 ? fmt::format("{}", batch) : "-";
    text += text.empty() ? shown : fmt::format(", from {} GPUs {}", ranks, shown);
    before = batch;
  }
  return text.empty() ? "-" : text;
}

Table reasons_table(const TrainingPlan& plan, std::size_t shown) {
  Table table{{fields::planned_way, fields::largest_batch}};
  if (const Field* rate = rate_field_of(plan)) {
    table.columns.push_back(
        rate->labelled(plan.rate == PlannedRate::tokens ? "best tokens/s" : "best samples/s")
            .with(Importance::most));
    if (plan.sizes.size() > 1)
      table.columns.push_back(fields::gpus.labelled("on GPUs").with(Importance::little));
  }
  table.columns.push_back(fields::fell_out);
  std::vector<std::string> names;
  for (std::size_t way = 0; way < plan.ways.size(); ++way) {
    const Group group = group_of(plan, way);
    if (group.empty()) continue;
    names.push_back(plan.ways[way].name);
    Record row;
    row.add(fields::planned_way, plan.ways[way].name);
    const std::string batches = largest_batches(plan, group);
    row.add(fields::largest_batch, batches == "-" ? FieldValue() : FieldValue(batches));
    if (const PlanCandidate* best = best_of(group); best != nullptr) {
      if (const Field* rate = rate_field_of(plan)) row.add(*rate, best->rate);
      row.add(fields::gpus, plan.sizes[best->size].ranks);
    }
    table.add(row.add(fields::fell_out, why_no_more(plan, group, shown)));
  }
  drop_if_empty(table, table.index_of(fields::largest_batch));
  if (const Field* rate = rate_field_of(plan)) drop_if_empty(table, table.index_of(*rate));
  table.notes = ends_explained(names);
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

/// The keys of a candidate, and those that were set for the whole plan.
std::string snippet_of(const TrainingPlan& plan, const PlanCandidate& candidate) {
  std::vector<Setting> settings = plan.set;
  settings.insert(settings.end(), candidate.settings.begin(), candidate.settings.end());
  return keys_text(settings);
}

/// "64 GPUs, fsdp, batch 4"
std::string candidate_text(const TrainingPlan& plan, const PlanCandidate& candidate) {
  const int ranks = plan.sizes[candidate.size].ranks;
  return fmt::format("{} GPU{}, {}{}", ranks, ranks == 1 ? "" : "s", plan.ways[candidate.way].name,
                     candidate.batch > 0 ? fmt::format(", batch {}", candidate.batch) : "");
}

/// The keys of the quickest and of the cheapest, and how to wrap the model, where fsdp is the
/// strategy.
std::string snippets_text(const TrainingPlan& plan) {
  if (plan.simulated() == 0) return "";
  struct Named {
    const PlanCandidate& candidate;
    const char* which;
  };
  std::vector<Named> chosen;
  const std::size_t cheapest = plan.cheapest().front();
  chosen.push_back({plan.candidates.front(),
                    cheapest == 0 && plan.sizes.size() > 1 ? "quickest and cheapest" : "quickest"});
  if (cheapest != 0) chosen.push_back({plan.candidates[cheapest], "cheapest"});
  std::string text = "keys for the scenario, in its sections, beside those that they have:\n";
  for (const auto& [candidate, which] : chosen)
    text += fmt::format("\n# the {}: {}\n{}", which, candidate_text(plan, candidate),
                        snippet_of(plan, candidate));
  const bool is_same = chosen.front().candidate.code == chosen.back().candidate.code;
  bool is_introduced = false;
  for (const auto& [candidate, which] : chosen) {
    if (candidate.code.empty() || (is_introduced && is_same)) continue;
    if (!is_introduced)
      text += "\nPython for the model, before the optimizer is made of its parameters:\n";
    is_introduced = true;
    text += fmt::format("\n# the {}{}\n{}", which,
                        is_same && chosen.size() > 1 ? ", and the cheapest" : "", candidate.code);
  }
  for (const auto& [candidate, which] : chosen)
    if (!candidate.options.empty())
      text += fmt::format("\n# of the {}, {}", which, candidate.options);
  return text;
}

/// How far off steps of the largest size were, if some of those simulated have a band; and which
/// have none.
std::string accuracy_of_plan(const TrainingPlan& plan) {
  std::vector<Strategy> known;
  std::vector<std::string> unknown;
  for (std::size_t index = 0; index < plan.simulated(); ++index) {
    const PlanCandidate& candidate = plan.candidates[index];
    const Strategy strategy = plan.ways[candidate.way].strategy;
    if (!candidate.figures.find(fields::band_low_ms)->is_nothing())
      known.push_back(strategy);
    else if (std::ranges::find(unknown, name_of(strategy)) == unknown.end())
      unknown.emplace_back(name_of(strategy));
  }
  std::string text = sentences(plan.knowledge, known);
  if (!text.empty() && plan.sizes.size() > 1) text = "Of the largest number of GPUs: " + text;
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
  const std::string_view fewer = plan.scenario.described
                                     ? "describing it with a smaller batch, or with checkpoints, "
                                 : least->batch > 1 ? "a smaller batch (--batches 1), "
                                                    : "";
  return fmt::format(
      "no combination fits {}: the least is {} by {}; try {}more GPUs under fsdp, or another "
      "device "
      "(--device)",
      memory_of_device(plan), to_string(least->peak), candidate_text(plan, *least), fewer);
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
  reasons.title =
      "of each way to train: what fits, and why no more is above; slower: than the last above";
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
