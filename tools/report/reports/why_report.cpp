#include "tools/report/reports/why_report.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/timeline/why.hpp"
#include "sim/predict/what_if.hpp"
#include "tools/report/records/choice_record.hpp"
#include "tools/report/records/unit_fields.hpp"
#include "tools/report/records/why_fields.hpp"
#include "tools/report/reports/loss_report.hpp"
#include "tools/report/reports/shared_update.hpp"
#include "tools/report/reports/unit_report.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_buckets_shown = 12;
constexpr double least_share_shown = 0.01;  ///< of a bucket's exposed time

std::string precise_ms(Duration time) {
  return fmt::format("{:.3f}", in_ms(time));
}

}  // namespace

std::string because(const ExposedBucket& bucket) {
  std::vector<Cause> causes(all_causes.begin(), all_causes.end());
  std::stable_sort(causes.begin(), causes.end(),
                   [&](Cause a, Cause b) { return bucket.by(a) > bucket.by(b); });
  std::string text;
  for (const Cause cause : causes)
    if (bucket.by(cause) > Duration::zero() &&
        (text.empty() || bucket.by(cause) >= scaled(bucket.times.exposed, least_share_shown)))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(cause),
                          precise_ms(bucket.by(cause)));
  return text;
}

namespace {

Duration sum_of(const std::vector<ExposedBucket>& buckets) {
  Duration sum{};
  for (const ExposedBucket& bucket : buckets) sum += bucket.times.exposed;
  return sum;
}

}  // namespace

const Field& field_of(Cause cause) {
  switch (cause) {
    case Cause::gradients:
      return fields::by_gradients;
    case Cause::turn:
      return fields::by_turn;
    case Cause::previous:
      return fields::by_previous;
    case Cause::launch:
      return fields::by_launch;
    case Cause::slowest_rank:
      return fields::by_slowest_rank;
    case Cause::host_copies:
      return fields::by_host_copies;
    case Cause::hook:
      return fields::by_hook;
    case Cause::copy_out:
      return fields::by_copy_out;
    case Cause::input_buffer:
      return fields::by_input_buffer;
    case Cause::kernels_wait:
      return fields::by_kernels_wait;
    case Cause::itself:
      return fields::by_itself;
    case Cause::one_queue:
      return fields::by_one_queue;
  }
  return fields::by_gradients;
}

bool is_told_of_units(Cause cause, const UnitCollective& collective) {
  const bool reduces = collective.kind == UnitCollectiveKind::reduction;
  const bool gathers = !reduces && collective.kind != UnitCollectiveKind::replica_sum;
  switch (cause) {
    case Cause::previous:
    case Cause::launch:
    case Cause::slowest_rank:
      return true;
    case Cause::copy_out:
    case Cause::itself:
      return gathers;
    case Cause::gradients:
      return !gathers;
    case Cause::input_buffer:
      return reduces;
    case Cause::kernels_wait:
    case Cause::one_queue:
      return collective.why.by(cause) > Duration::zero() || collective.held == cause;
    case Cause::turn:
    case Cause::host_copies:
    case Cause::hook:
      break;
  }
  return false;
}

namespace {

/// Is it a cause of this bucket's kind, whether or not it accounts for anything?
bool is_told(Cause cause, const ExposedBucket& bucket) {
  if (is_of_units(cause)) return false;
  if (cause == Cause::hook) return bucket.collectives > 1;
  const bool is_rare = cause == Cause::host_copies || cause == Cause::kernels_wait;
  return !is_rare || bucket.by(cause) > Duration::zero();
}

/// Their last ranks as those of the step that are told apart.
std::vector<ExposedBucket> exposed_buckets(const Step& step) {
  std::vector<ExposedBucket> buckets =
      why_exposed(step.job(), step.times, step.metrics, step.ranks.front());
  for (ExposedBucket& each : buckets) each.last_rank = step.index_of(each.last_rank);
  return buckets;
}

/// `ranks`: the names of the ranks; empty: there are no exceptions.
Record bucket_record(const ExposedBucket& bucket, const std::vector<std::string>& ranks) {
  Record shares, record;
  for (const Cause cause : all_causes)
    if (is_told(cause, bucket)) shares.add(field_of(cause), in_ms(bucket.by(cause)));
  record.add(fields::index, bucket.bucket)
      .add(fields::ready_ms, in_ms(bucket.times.ready))
      .add(fields::called_ms, in_ms(bucket.called))
      .add(fields::issued_ms, in_ms(bucket.issued))
      .add(fields::launched_ms, in_ms(bucket.launched))
      .add(fields::previous_end_ms,
           bucket.previous == Instant{} ? FieldValue() : FieldValue(in_ms(bucket.previous)))
      .add(fields::start_ms, in_ms(bucket.times.start))
      .add(fields::end_ms, in_ms(bucket.times.end))
      .add(fields::bucket_exposed_ms, in_ms(bucket.times.exposed))
      .add(fields::reason, field_of(bucket.cause).name)
      .add(fields::exposed_by_ms, std::move(shares));
  if (!ranks.empty()) {
    const std::string& last = ranks.at(bucket.last_rank);
    record.add(fields::waits_for, last.empty() ? FieldValue() : FieldValue(last));
  }
  add_choice(record, bucket.times.choice);
  return record;
}

Table buckets_table(const Scenario& scenario, const Step& step,
                    std::vector<ExposedBucket> buckets) {
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const ExposedBucket& a, const ExposedBucket& b) {
                     return a.times.exposed > b.times.exposed;
                   });
  const std::size_t shown = std::min(buckets.size(), most_buckets_shown);
  Table table{{fields::bucket_in_words, fields::bytes, fields::ready, fields::called_ms,
               fields::launched_ms, fields::previous_end_ms, fields::start, fields::end,
               fields::exposed, fields::because, fields::how}};
  const std::vector<std::string> ranks = names_of_ranks(scenario, step);
  if (!ranks.empty()) table.columns.insert(table.columns.end() - 2, fields::waits_for);
  for (std::size_t i = 0; i < shown; ++i) {
    Record record = bucket_record(buckets[i], ranks);
    record.add(fields::bucket_in_words, bucket_label(scenario, step.job(), buckets[i].bucket))
        .add(fields::bytes, step.job().groups[buckets[i].bucket].size.count)
        .add(fields::because, because(buckets[i]))
        .add(fields::how, choice_text(buckets[i].times.choice));
    table.add(record);
  }
  if (shown < buckets.size())
    table.notes = fmt::format(
        "and {} more, {} ms", buckets.size() - shown,
        precise_ms(sum_of({buckets.begin() + static_cast<std::ptrdiff_t>(shown), buckets.end()})));
  return table;
}

void add_buckets(Page& page, const Scenario& scenario, const NamedStep& named,
                 const StepMetrics* none) {
  const Step& step = *named.step;
  const std::string& label = named.name;
  if (step.metrics.collectives == 0)
    return page.add(Paragraph{fmt::format("{}: nothing is reduced", label)});
  const bool units = has_units(step);
  std::vector<ExposedBucket> buckets = units ? exposed_units(step) : exposed_buckets(step);
  std::string said =
      fmt::format("{}: {} of {} {}s are exposed, {} ms", label, buckets.size(),
                  step.job().groups.size(), word_for_groups({named}), precise_ms(sum_of(buckets)));
  if (none != nullptr) {
    const bool waits = (step.metrics.input_wait + none->input_wait) > Duration::zero();
    const Duration longer = exposed(step.metrics, *none);
    said += fmt::format("; the step{} is {} ms {} than without communication",
                        waits ? ", without waits for batches," : "",
                        precise_ms(std::max(longer, -longer)),
                        longer < Duration::zero() ? "shorter" : "longer");
    if (const auto saved = saved_by_sharing(step, *none))
      said += fmt::format(", whose update takes {} ms more", precise_ms(*saved));
  }
  if (buckets.empty() && !units) {
    page.add(Paragraph{said});
  } else {
    Table table =
        units ? exposed_units_table(step) : buckets_table(scenario, step, std::move(buckets));
    table.title = said;
    page.add(std::move(table));
  }
  if (const auto sent = sent_behind_update(step))
    page.add(Paragraph{behind_update_text(label, step, *sent)});
}

std::string_view heading(Change change) {
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
    case Change::no_exceptions:
      return "no exceptions";
  }
  return "";
}

/// Does the memory of the host bound an all-reduce of the step?
bool is_bound_by_host(const Step& step) {
  return std::ranges::any_of(step.metrics.buckets, [](const BucketTimes& bucket) {
    return bucket.choice.bound == CollectiveBound::host_memory;
  });
}

/// A column for each change, as every strategy knows the same ones.
Table changes_table(const Comparison& comparison) {
  Table table{{fields::strategy_in_words.labelled("step ms"), fields::step_ms.labelled("now")}};
  table.columns.back().look = fields::thousandths;
  table.title = "what would remove it:";
  bool longer = false, unchanged = false;
  for (const Step& step : comparison.compared) {
    TableRow row{strategy_label(step.training), in_ms(step.metrics.step)};
    for (const WhatIf& each : what_if(comparison.priced.model, step.training)) {
      if (table.rows.empty())
        table.columns.push_back(
            fields::changed_step_ms.labelled(heading(each.change))
                .with(each.change == Change::no_exceptions ? fields::much : fields::usual));
      row.emplace_back(in_ms(each.step));
      longer =
          longer || (each.change == Change::link_twice_as_fast && each.step > step.metrics.step);
      unchanged = unchanged || (each.change == Change::link_twice_as_fast &&
                                each.step == step.metrics.step && is_bound_by_host(step));
    }
    table.add(std::move(row));
  }
  if (longer)
    table.notes =
        "link x 2: where a step is longer, a faster link takes more of the memory's bandwidth from "
        "kernels than it saves\n";
  if (unchanged)
    table.notes +=
        "link x 2: the host's memory bounds these all-reduces, not the link; what it moves is "
        "written as what the link carries (intra_node.carries)\n";
  return table;
}

/// Which causes that are not everywhere any collective of these steps has.
struct RareCauses {
  bool kernels_wait = false, one_queue = false;
};

RareCauses rare_causes_of(const std::vector<NamedStep>& steps) {
  RareCauses rare;
  for (const NamedStep& named : steps)
    for (const ExposedBucket& each : exposed_groups(*named.step)) {
      rare.kernels_wait = rare.kernels_wait || each.by(Cause::kernels_wait) > Duration::zero();
      rare.one_queue = rare.one_queue || each.by(Cause::one_queue) > Duration::zero();
    }
  return rare;
}

std::string rare_causes_text(const RareCauses& rare) {
  std::string text;
  if (rare.kernels_wait)
    text +=
        "  kernels wait  kernels that do not need its result stood behind it: nothing runs beside "
        "it, as under\n"
        "                DeepSpeed without overlap_comm, or they packed the next input into the "
        "memory of its own\n";
  if (rare.one_queue)
    text +=
        "  one queue     kernels, or the collective itself, stood behind another one in the queue "
        "that all streams\n"
        "                share (cuda_device_max_connections: 1)\n";
  return text;
}

/// What the causes of buckets mean. `copied`: some are copied to the host; `several`: some have
/// several collectives.
std::string buckets_text(bool copied, bool several) {
  std::string text =
      "why (ms): an all-reduce is exposed while it runs and the compute stream has nothing to do\n"
      "  gradients     ready so late that the all-reduce would be exposed even if it began at "
      "once\n"
      "  turn          it had to wait: buckets go in order; naive and flat send after the backward "
      "pass\n"
      "  previous      the collective before it was still running\n"
      "  launch        the host had not launched it yet or, on a CPU, not handed it over to the "
      "thread\n"
      "                that communicates; while the collective before it runs that one counts\n"
      "  slowest rank  another rank arrived later, so that less computation was left to hide it; "
      "the "
      "wait\n"
      "                itself comes before the all-reduce and is not in its exposed time\n";
  if (copied)
    text +=
        "  host copies   it waited for its copy to the host, or the copies there and back were "
        "exposed themselves:\n"
        "                nothing was computed then, and nothing was reduced\n";
  if (several)
    text +=
        "  hook          a later collective of a comm hook waited for the hook's steps before it: "
        "under\n"
        "                ZeRO's hooks a broadcast for its owner's update\n"
        "Of a hook's several collectives in a bucket, called to end and how are of the one that is "
        "exposed\n"
        "longest; exposed and because are of all of them.\n";
  return text;
}

}  // namespace

std::string bucket_label(const Scenario& scenario, const program::Job& job, std::size_t bucket) {
  if (bucket == job.groups.size()) return name_of_group(job, bucket);
  const std::vector<std::int32_t>& parameters = job.groups[bucket].parameters;
  const std::string& first =
      scenario.workload.parameters[static_cast<std::size_t>(parameters.at(0))].name;
  if (parameters.size() == 1) return fmt::format("{} {}", bucket, first);
  return fmt::format("{} {} +{}", bucket, first, parameters.size() - 1);
}

std::vector<ExposedBucket> exposed_groups(const Step& step) {
  if (has_units(step)) return exposed_units(step);
  std::vector<ExposedBucket> all =
      why_exposed(step.job(), step.times, step.metrics, step.ranks.front());
  if (const auto sent = sent_behind_update(step);
      sent && sent->why.times.exposed > Duration::zero())
    all.push_back(sent->why);
  return all;
}

bool has_later_collectives(const Step& step) {
  if (has_units(step)) return false;
  const RankOfJob rank = step.rank();
  std::vector<int> sent(rank.job.groups.size(), -1);  // [bucket] the latest micro-batch
  return std::ranges::any_of(rank.program.tasks, [&](const program::Task& task) {
    const std::int32_t bucket = rank.origin_of(task).group;
    if (!rank.communicates(task) || bucket == nobody) return false;
    return std::exchange(sent[at(bucket)], task.micro_batch) == task.micro_batch;
  });
}

Page exposed_page(const Scenario& scenario, const std::vector<NamedStep>& steps,
                  const WithoutCommunication& without) {
  const bool several = std::ranges::any_of(
      steps, [](const NamedStep& named) { return has_later_collectives(*named.step); });
  const bool copied = std::ranges::any_of(steps, [](const NamedStep& named) {
    const RankOfJob rank = named.step->rank();
    return std::ranges::any_of(rank.program.tasks,
                               [&](const program::Task& task) { return rank.moves(task); });
  });
  const bool shared = std::ranges::any_of(steps, [&](const NamedStep& named) {
    const StepMetrics* none = without(*named.step);
    return none != nullptr && saved_by_sharing(*named.step, *none).has_value();
  });
  const std::string word = word_for_groups(steps);
  std::string text = word == "unit" ? "" : buckets_text(copied, several);
  if (word != "bucket") text += exposed_units_text(word == "unit");
  text += rare_causes_text(rare_causes_of(steps));
  text += shared ? "Without communication each rank updates all parameters, under ZeRO's hooks its "
                   "share. But for that, a\n"
                   "step is longer than without communication by more than its exposed buckets: "
                   "interference,\n"
                 : fmt::format(
                       "A step is longer than without communication by more than its exposed "
                       "{}: interference,\n",
                       word == "unit" ? "units" : "buckets");
  text += "copies, hooks, and what earlier micro-batches and broadcasts wait for come on top.\n";
  Page page;
  page.add(Paragraph{std::move(text)});
  for (const NamedStep& named : steps) add_buckets(page, scenario, named, without(*named.step));
  return page;
}

Page why_page(const Comparison& comparison, const std::vector<StepLoss>& losses) {
  Page page;
  page.add(loss_table(comparison, losses));
  page.add(exposed_page(comparison.scenario, comparison.named(),
                        [&](const Step& step) { return &comparison.without_communication(step); }));
  page.add(changes_table(comparison));
  return page;
}

std::vector<Record> why_records(const Comparison& comparison, const std::vector<StepLoss>& losses) {
  std::vector<Record> all;
  for (std::size_t s = 0; s < comparison.compared.size(); ++s) {
    const Step& step = comparison.compared[s];
    const bool units = has_units(step);
    const std::vector<ExposedBucket> buckets = units ? exposed_units(step) : exposed_buckets(step);
    const auto sent = sent_behind_update(step);
    const Duration behind = sent ? sent->why.times.exposed : Duration::zero();
    const std::vector<std::string> ranks = names_of_ranks(comparison.scenario, step);
    List exposed_buckets, changes;
    if (!units)
      for (const ExposedBucket& bucket : buckets)
        exposed_buckets.emplace_back(bucket_record(bucket, ranks));
    for (const WhatIf& each : what_if(comparison.priced.model, step.training))
      changes.emplace_back(Record()
                               .add(fields::change, name_of(each.change))
                               .add(fields::changed_step_ms, in_ms(each.step)));
    const Duration longer = exposed(step.metrics, comparison.without_communication(step));
    all.emplace_back(loss_record(losses[s]))
        .add(fields::exposed_in_buckets_ms, in_ms(sum_of(buckets)))
        .add(fields::exposed_elsewhere_ms, in_ms(longer - sum_of(buckets) - behind))
        .add(fields::exposed_buckets, std::move(exposed_buckets))
        .add(fields::what_if, std::move(changes));
    if (units) all.back().add(fields::units, unit_records(comparison.scenario, step, true));
    if (sent)
      all.back()
          .add(fields::exposed_behind_update_ms, in_ms(behind))
          .add(fields::behind_update, behind_update_record(step, *sent));
  }
  return all;
}

}  // namespace ddpsim
