#include "tools/report/reports/schedule_report.hpp"

#include <map>

#include <fmt/format.h>

#include "model/parallel/policy/iteration.hpp"
#include "model/program/text.hpp"
#include "sim/predict/predict.hpp"
#include "tools/report/records/choice_record.hpp"
#include "tools/report/records/memory_fields.hpp"
#include "tools/report/records/schedule_fields.hpp"
#include "tools/report/records/unit_fields.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/unit_report.hpp"
#include "tools/report/reports/why_report.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

struct HookFiring {
  std::int32_t parameter, bucket;
  Instant host, gradient;
};

/// Hooks of the last synchronised micro-batch, in firing order.
std::vector<HookFiring> firings(const Step& step) {
  std::vector<HookFiring> hooks;
  std::int16_t micro_batch = 0;
  std::size_t kernel = 0;  // the latest task that computed a gradient
  const RankOfJob rank = step.rank();
  for (std::size_t i = 0; i < rank.times.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    if (rank.is_part_of_another(task)) continue;
    const Operation operation = operation_of(rank.job, task);
    if (operation == Operation::backward || operation == Operation::accumulate) kernel = i;
    if (operation != Operation::hook || rank.origin_of(task).parameter == nobody) continue;
    if (task.micro_batch != micro_batch) hooks.clear();
    micro_batch = task.micro_batch;
    const program::Origin& origin = rank.origin_of(task);
    hooks.push_back({origin.parameter, origin.group, rank.times[i].issued, rank.times[kernel].end});
  }
  return hooks;
}

std::string shape_text(const Parameter& parameter) {
  std::string text;
  for (const std::int64_t extent : parameter.shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

const Parameter& parameter_of(const Scenario& scenario, std::int32_t index) {
  return scenario.workload.parameters[static_cast<std::size_t>(index)];
}

Table hooks_table(const Scenario& scenario, const std::vector<HookFiring>& hooks) {
  Table table{{fields::firing, fields::parameter, fields::shape, fields::parameter_bytes,
               fields::bucket, fields::host_ms, fields::gradient_ms}};
  table.title = "hooks, in firing order";
  for (std::size_t i = 0; i < hooks.size(); ++i) {
    const Parameter& which = parameter_of(scenario, hooks[i].parameter);
    table.add({i, which.name, shape_text(which), which.size().count, hooks[i].bucket,
               in_ms(hooks[i].host), in_ms(hooks[i].gradient)});
  }
  return table;
}

/// The first and the last parameter; of a unit whose parameters are all frozen, its name.
std::string first_and_last(const Scenario& scenario, const program::ParameterGroup& bucket) {
  if (bucket.parameters.empty()) return bucket.name;
  return parameter_of(scenario, bucket.parameters.front()).name + " .. " +
         parameter_of(scenario, bucket.parameters.back()).name;
}

}  // namespace

Table buckets_table(const Scenario& scenario, const Step& step) {
  if (has_units(step)) return units_table(scenario, step);
  Table table{{fields::index, fields::exact_bytes, fields::bytes.only_for(Audience::people),
               fields::tensors, fields::ready_ms, fields::start_ms, fields::end_ms,
               fields::bucket_exposed_ms, fields::first_and_last, fields::how}};
  table.title = "buckets, in launch order";
  if (has_later_collectives(step))
    table.notes =
        "The comm hook has several collectives in a bucket: start and how are of the first, end is "
        "of the last, and exposed of all of them.\n";
  const std::vector<program::ParameterGroup>& buckets = step.job().groups;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const program::ParameterGroup& bucket = buckets[b];
    const BucketTimes& at = step.metrics.buckets[b];
    table.add({b, bucket.size.count, bucket.size.count, bucket.parameters.size(), in_ms(at.ready),
               in_ms(at.start), in_ms(at.end), in_ms(at.exposed), first_and_last(scenario, bucket),
               choice_text(at.choice)});
  }
  return table;
}

namespace {

/// The tasks of a rank that are listed, in the order in which its host issues them.
std::vector<std::uint32_t> shown_tasks(const RankOfJob& rank) {
  std::vector<std::uint32_t> shown;
  for (std::uint32_t i = 0; i < rank.program.tasks.size(); ++i)
    if (!rank.is_part_of_another(rank.program.tasks[i])) shown.push_back(i);
  return shown;
}

std::string task_counts(const Step& step) {
  const RankOfJob rank = step.rank();
  const std::vector<std::uint32_t> shown = shown_tasks(rank);
  std::map<Operation, std::int64_t> counts;
  for (const std::uint32_t i : shown) ++counts[operation_of(rank.job, rank.program.tasks[i])];
  std::string text = fmt::format("{} tasks:", shown.size());
  for (const auto& [operation, count] : counts)
    text += fmt::format(" {} {},", count, name_of(operation));
  text.pop_back();
  return text;
}

/// What a kernel computes or moves; nothing of other tasks.
FieldValue work_text(const Work& work) {
  if (!work.computes()) return {};
  return describe(work) + (work.launches > 1 ? fmt::format(", {} launches", work.launches) : "");
}

Table tasks_table(const Scenario& scenario, const Step& step) {
  Table table{{fields::task, fields::what, fields::stream, fields::issued_at, fields::start_ms,
               fields::end_ms, fields::work}};
  const RankOfJob rank = step.rank();
  std::size_t number = 0;
  for (const std::uint32_t i : shown_tasks(rank)) {
    const program::Task& task = rank.program.tasks[i];
    const TaskTimes& times = rank.times[i];
    table.add({number++, task_label(scenario, step, task), rank.job.streams[task.stream].name,
               in_ms(times.issued), in_ms(times.start), in_ms(times.end),
               work_text(rank.job.works[task.work])});
  }
  return table;
}

/// The rank whose values a broadcast of that rank's group sends.
std::int32_t sender_of(const program::Job& job, const program::Collective& sent, std::size_t rank) {
  const program::Membership group = program::membership(job.communicators[at(sent.communicator)],
                                                        static_cast<std::int32_t>(rank));
  return group.group == nullptr ? sent.root : group.group->at(at(sent.root));
}

/// Every collective of the step, in the order of the program: that in which they are issued, but
/// for those a comm hook issues once an earlier one of the same bucket has ended.
List collectives_of(const Scenario& scenario, const Step& step) {
  const RankOfJob rank = step.rank();
  const bool units = has_units(step);
  List collectives;
  for (const program::Task& task : rank.program.tasks) {
    const auto* sent = std::get_if<program::Collective>(&rank.action_of(task));
    if (sent == nullptr) continue;
    const program::Origin& origin = rank.origin_of(task);
    const Work& work = rank.job.works[task.work];
    Record record;
    record.add(fields::operation, name_of(work.operation))
        .add(fields::collective_bytes, work.payload.count);
    if (origin.group != nobody)
      record.add(units ? fields::collective_unit : fields::collective_bucket, origin.group);
    if (sent->what == program::Collectives::broadcast)
      record.add(fields::from_rank, sender_of(rank.job, *sent, step.ranks.front()));
    if (task.micro_batch > 0) record.add(fields::micro_batch, task.micro_batch);
    add_choice(record, rank.detail_of(task).choice);
    collectives.emplace_back(record.add(fields::what, task_label(scenario, step, task)));
  }
  return collectives;
}

List hooks_of(const Scenario& scenario, const Step& step) {
  List hooks;
  for (const HookFiring& hook : firings(step))
    hooks.emplace_back(Record()
                           .add(fields::parameter, parameter_of(scenario, hook.parameter).name)
                           .add(fields::bucket, hook.bucket)
                           .add(fields::host_ms, in_ms(hook.host))
                           .add(fields::gradient_ms, in_ms(hook.gradient)));
  return hooks;
}

List buckets_of(const Scenario& scenario, const Step& step) {
  List buckets;
  if (has_units(step)) return buckets;
  for (const program::ParameterGroup& bucket : step.job().groups) {
    List names;
    for (const std::int32_t index : bucket.parameters)
      names.emplace_back(parameter_of(scenario, index).name);
    buckets.emplace_back(
        Record().add(fields::bytes, bucket.size.count).add(fields::parameters, std::move(names)));
  }
  return buckets;
}

}  // namespace

Page schedule_page(const Scenario& scenario, const Step& step, bool tasks,
                   const Knowledge& knowledge, const std::string& which) {
  Page page;
  page.add(
      Paragraph{fmt::format("{}{}{}: {}\n{}", which, which.empty() ? "" : "\n", scenario.name,
                            strategy_label(step.training), cluster_text(scenario, knowledge))});
  const std::vector<HookFiring> hooks = firings(step);
  if (!hooks.empty()) page.add(hooks_table(scenario, hooks));
  if (!step.job().groups.empty()) page.add(buckets_table(scenario, step));
  page.add(Paragraph{task_counts(step)});
  page.add(Paragraph{memory_text(scenario, step)});
  if (tasks) page.add(tasks_table(scenario, step));
  return page;
}

Record schedule_record(const Scenario& scenario, const Step& step) {
  Record record;
  record.add(fields::format, "ddpsim.schedule/1")
      .add(fields::scenario, scenario.name)
      .add(fields::cluster, cluster_record(scenario))
      .add(described_entry(scenario))
      .add(fields::strategy, name_of(step.training.strategy))
      .add(fields::hooks, hooks_of(scenario, step))
      .add(fields::buckets, buckets_of(scenario, step))
      .add(fields::all_collectives, collectives_of(scenario, step))
      .add(fields::task_count, shown_tasks(step.rank()).size())
      .add(fields::memory, memory_record(scenario, step, memory_of(scenario, step)));
  if (has_units(step)) record.add(fields::units, unit_records(scenario, step, false));
  return record;
}

ConsecutiveSteps scheduled_steps(const StepModel& model, const Training& training,
                                 std::optional<int> steps_asked) {
  if (steps_asked) return consecutive_steps(model, training, *steps_asked);
  return {{predict(model, training)}, {0}, {1}, {}};
}

Page schedule_page(const Scenario& scenario, const ConsecutiveSteps& steps,
                   std::optional<int> steps_asked, bool tasks, const Knowledge& knowledge) {
  Page page;
  for (std::size_t kind = 0; kind < steps.kinds.size(); ++kind) {
    const Step& each = steps.kinds[kind];
    const std::string which = steps_asked ? fmt::format("{} of {} steps: {}", steps.counts[kind],
                                                        *steps_asked, phase_label(each.training))
                                          : "";
    page.add(schedule_page(scenario, each, tasks, knowledge, which));
  }
  return page;
}

Page program_page(const ConsecutiveSteps& steps) {
  Page page;
  for (const Step& step : steps.kinds) {
    page.add(Paragraph{"what each task does to which memory: what it writes <- what it reads"});
    page.add(Verbatim{program::text_of(step.job())});
  }
  return page;
}

Record schedule_record(const Scenario& scenario, const ConsecutiveSteps& steps,
                       std::optional<int> steps_asked) {
  Record record = schedule_record(scenario, steps.kinds.front());
  if (!steps_asked) return record;
  List kinds;
  for (std::size_t kind = 0; kind < steps.kinds.size(); ++kind)
    kinds.emplace_back(schedule_record(scenario, steps.kinds[kind])
                           .add(fields::phase, phase_label(steps.kinds[kind].training))
                           .add(fields::steps_of_this_kind, steps.counts[kind]));
  return record.add(fields::kinds_of_steps, std::move(kinds));
}

}  // namespace ddpsim
