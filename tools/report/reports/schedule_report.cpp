#include "tools/report/reports/schedule_report.hpp"

#include <map>

#include <fmt/format.h>

#include "model/ddp/build_schedule.hpp"
#include "model/ddp/iteration.hpp"
#include "model/ddp/job_of_step.hpp"
#include "model/program/text.hpp"
#include "sim/predict/predict.hpp"
#include "tools/report/records/choice_record.hpp"
#include "tools/report/records/memory_fields.hpp"
#include "tools/report/records/schedule_fields.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/memory_record.hpp"
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
  for (std::size_t i = 0; i < step.schedule.tasks.size(); ++i) {
    const Task& task = step.schedule.tasks[i];
    const TaskTimes& at = step.timeline.ranks[0][i];
    if (task.operation == Operation::backward || task.operation == Operation::accumulate)
      kernel = i;
    if (task.operation != Operation::hook) continue;
    if (task.micro_batch != micro_batch) hooks.clear();
    micro_batch = task.micro_batch;
    hooks.push_back({task.parameter, task.bucket, at.issued, step.timeline.ranks[0][kernel].end});
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

}  // namespace

Table buckets_table(const Scenario& scenario, const Step& step) {
  Table table{{fields::index, fields::exact_bytes, fields::bytes.only_for(Audience::people),
               fields::tensors, fields::ready_ms, fields::start_ms, fields::end_ms,
               fields::bucket_exposed_ms, fields::first_and_last, fields::how}};
  table.title = "buckets, in launch order";
  if (has_later_collectives(step.schedule))
    table.notes =
        "The comm hook has several collectives in a bucket: start and how are of the first, end is "
        "of the last, and exposed of all of them.\n";
  for (std::size_t b = 0; b < step.schedule.buckets.size(); ++b) {
    const Bucket& bucket = step.schedule.buckets[b];
    const BucketTimes& at = step.metrics.buckets[b];
    table.add({b, bucket.size.count, bucket.size.count, bucket.parameters.size(), in_ms(at.ready),
               in_ms(at.start), in_ms(at.end), in_ms(at.exposed),
               parameter_of(scenario, bucket.parameters.front()).name + " .. " +
                   parameter_of(scenario, bucket.parameters.back()).name,
               choice_text(at.choice)});
  }
  return table;
}

namespace {

std::string task_counts(const Step& step) {
  std::map<Operation, std::int64_t> counts;
  for (const Task& task : step.schedule.tasks) ++counts[task.operation];
  std::string text = fmt::format("{} tasks:", step.schedule.tasks.size());
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
  for (std::size_t i = 0; i < step.schedule.tasks.size(); ++i) {
    const Task& task = step.schedule.tasks[i];
    const TaskTimes& at = step.timeline.ranks[0][i];
    table.add({i, task_label(scenario, step.schedule, task), name_of(task.stream), in_ms(at.issued),
               in_ms(at.start), in_ms(at.end), work_text(step.schedule.work_of(task))});
  }
  return table;
}

/// Every collective of the step, in the order of the schedule: that in which they are issued, but
/// for those a comm hook issues once an earlier one of the same bucket has ended.
List collectives_of(const Scenario& scenario, const Step& step) {
  const Schedule& schedule = step.schedule;
  List collectives;
  for (const Task& task : schedule.tasks) {
    if (!is_collective(task.operation)) continue;
    Record record;
    record.add(fields::operation, name_of(task.operation))
        .add(fields::collective_bytes, schedule.work_of(task).payload.count);
    if (task.bucket != nobody) record.add(fields::collective_bucket, task.bucket);
    if (task.owner != nobody) record.add(fields::from_rank, task.owner);
    if (task.micro_batch > 0) record.add(fields::micro_batch, task.micro_batch);
    add_choice(record, step.timeline.detail_of(task).choice);
    collectives.emplace_back(record.add(fields::what, task_label(scenario, schedule, task)));
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

List buckets_of(const Scenario& scenario, const Schedule& schedule) {
  List buckets;
  for (const Bucket& bucket : schedule.buckets) {
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
  if (!step.schedule.buckets.empty()) page.add(buckets_table(scenario, step));
  page.add(Paragraph{task_counts(step)});
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
      .add(fields::buckets, buckets_of(scenario, step.schedule))
      .add(fields::all_collectives, collectives_of(scenario, step))
      .add(fields::task_count, step.schedule.tasks.size())
      .add(fields::memory,
           memory_record(scenario, memory_of(scenario, step.training, step.schedule)));
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

Page program_page(const StepWorks& works, const ConsecutiveSteps& steps) {
  Page page;
  for (const Step& step : steps.kinds) {
    const Schedule schedule = build_schedule(works, step.training);
    page.add(Paragraph{"what each task does to which memory: what it writes <- what it reads"});
    page.add(Verbatim{program::text_of(program::job_of(schedule, works))});
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
