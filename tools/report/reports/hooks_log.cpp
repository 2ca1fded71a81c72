#include "tools/report/reports/hooks_log.hpp"

#include <algorithm>
#include <optional>

#include "tools/report/records/hook_fields.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/output.hpp"

namespace ddpsim {
namespace {

struct Firing {
  std::string hook, parameter, layer;
  int micro_batch = 0;
  std::optional<std::int32_t> bucket;
  Instant host{}, ready{};
};

/// When what hooks are fired for is there on the device. A gradient is what backward made of it, or
/// what has been done to itself since: a costly hook on one says nothing of another.
class Ready {
 public:
  explicit Ready(std::size_t parameters) : own_(parameters) {}

  Instant of(std::int32_t parameter) const {
    return parameter == nobody ? passed_ : own_[at(parameter)].value_or(passed_);
  }

  void after(const Schedule& schedule, const Task& task, Instant end) {
    if (task.micro_batch != micro_batch_) std::fill(own_.begin(), own_.end(), std::nullopt);
    micro_batch_ = task.micro_batch;
    const Operation operation = task.operation;
    if (operation == Operation::forward || operation == Operation::backward ||
        operation == Operation::module_hook)
      passed_ = end;
    if (operation == Operation::accumulate) own_[at(task.parameter)] = end;
    // A hook that computes nothing only costs the host time.
    if (operation == Operation::gradient_hook && schedule.work_of(task).computes())
      for (const std::int32_t index : schedule.hooks[at(task.user_hook)].groups[at(task.kernel)])
        own_[at(index)] = end;
  }

 private:
  std::vector<std::optional<Instant>> own_;  ///< [parameter] end of the latest of its own
  Instant passed_{};                         ///< end of the latest kernel of the passes
  std::int16_t micro_batch_ = 0;
};

std::vector<Firing> firings(const Workload& workload, const Step& step) {
  const Schedule& schedule = step.schedule;
  const std::vector<TaskTimes>& times = step.timeline.ranks.front();
  std::vector<std::optional<std::int32_t>> bucket_of(workload.parameters.size());
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b)
    for (const std::int32_t index : schedule.buckets[b].parameters)
      bucket_of[at(index)] = static_cast<std::int32_t>(b);
  std::vector<Firing> all;
  Ready ready(workload.parameters.size());
  const Task* before = nullptr;
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    const bool user = task.user_hook != nobody;
    // There and back from a GPU: one hook of several tasks.
    const bool goes_on = user && task.operation == Operation::module_hook && before != nullptr &&
                         before->user_hook == task.user_hook && before->layer == task.layer;
    if ((user || task.operation == Operation::hook) && !goes_on) {
      Firing firing;
      firing.hook = user ? std::string(name_of(schedule.hooks[at(task.user_hook)].kind)) : "ddp";
      if (user && schedule.hooks[at(task.user_hook)].kind == UserHookKind::plugin)
        firing.hook = label(schedule.hooks[at(task.user_hook)]);
      std::int32_t layer = task.layer;
      if (task.parameter != nobody) {
        const Parameter& parameter = workload.parameters[at(task.parameter)];
        firing.parameter = parameter.name;
        firing.bucket = bucket_of[at(task.parameter)];
        layer = parameter.layer;
      }
      firing.layer = workload.layers[at(layer)].name;
      firing.micro_batch = task.micro_batch;
      firing.host = times[i].issued;
      firing.ready = ready.of(task.parameter);
      all.push_back(firing);
    }
    ready.after(schedule, task, times[i].end);
    before = &task;
  }
  return all;
}

}  // namespace

bool wants_json(const std::string& path) {
  return path.ends_with(".json");
}

std::string hooks_log(const Scenario& scenario, const std::vector<LoggedStep>& steps, bool json) {
  Table table{{fields::strategy, fields::source, fields::position, fields::hook, fields::parameter,
               fields::layer, fields::micro_batch, fields::bucket, fields::host_ms,
               fields::device_ready_ms}};
  for (const LoggedStep& logged : steps) {
    std::size_t position = 0;
    for (const Firing& firing : firings(scenario.workload, *logged.step))
      table.add({logged.strategy, logged.source, position++, firing.hook,
                 firing.parameter.empty() ? FieldValue() : FieldValue(firing.parameter),
                 firing.layer, firing.micro_batch, firing.bucket, in_ms(firing.host),
                 in_ms(firing.ready)});
  }
  if (!json) return csv_of(table);
  nlohmann::ordered_json root{{"format", "ddpsim.hooks/1"}, {"scenario", scenario.name}};
  root["hooks"] = json_of(table);
  return json_text(root);
}

}  // namespace ddpsim
