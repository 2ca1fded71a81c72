#include "tools/report/hooks_log.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/report/csv.hpp"
#include "tools/report/output.hpp"

namespace ddpsim {
namespace {

struct Firing {
  std::string hook, parameter, layer;
  int micro_batch = 0;
  std::optional<std::int32_t> bucket;
  Instant host{}, ready{};
};

std::size_t at(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

/// When what hooks are fired for is there on the device. A gradient is what backward made of it, or what
/// has been done to itself since: a costly hook on one says nothing of another.
class Ready {
 public:
  explicit Ready(std::size_t parameters) : own_(parameters) {}

  Instant of(std::int32_t parameter) const {
    return parameter == nobody ? passed_ : own_[at(parameter)].value_or(passed_);
  }

  void after(const Schedule& schedule, const Task& task, Instant end) {
    if (task.micro_batch != micro_batch_) std::fill(own_.begin(), own_.end(), std::nullopt);
    micro_batch_ = task.micro_batch;
    switch (task.operation) {
      case Operation::forward:
      case Operation::backward:
      case Operation::module_hook:
        passed_ = end;
        break;
      case Operation::accumulate:
        own_[at(task.parameter)] = end;
        break;
      case Operation::gradient_hook:
        if (task.work == Duration::zero()) break;  // it only costs the host time
        for (const std::int32_t index : schedule.hooks[at(task.user_hook)].groups[at(task.kernel)])
          own_[at(index)] = end;
        break;
      default:
        break;
    }
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
  std::string csv =
      "strategy,source,position,hook,parameter,layer,micro_batch,bucket,host_ms,device_ready_ms\n";
  nlohmann::ordered_json root;
  root["format"] = "ddpsim.hooks/1";
  root["scenario"] = scenario.name;
  root["hooks"] = nlohmann::ordered_json::array();
  for (const LoggedStep& logged : steps) {
    std::size_t position = 0;
    for (const Firing& firing : firings(scenario.workload, *logged.step)) {
      if (json) {
        nlohmann::ordered_json row{{"strategy", logged.strategy},
                                   {"source", logged.source},
                                   {"position", position},
                                   {"hook", firing.hook},
                                   {"parameter", nullptr},
                                   {"layer", firing.layer},
                                   {"micro_batch", firing.micro_batch},
                                   {"bucket", nullptr},
                                   {"host_ms", in_ms(firing.host)},
                                   {"device_ready_ms", in_ms(firing.ready)}};
        if (!firing.parameter.empty()) row["parameter"] = firing.parameter;
        if (firing.bucket) row["bucket"] = *firing.bucket;
        root["hooks"].push_back(std::move(row));
      } else {
        csv += fmt::format("{},{},{},{},{},{},{},{},{:.6f},{:.6f}\n", csv_field(logged.strategy),
                           logged.source, position, csv_field(firing.hook),
                           csv_field(firing.parameter), csv_field(firing.layer), firing.micro_batch,
                           firing.bucket ? std::to_string(*firing.bucket) : std::string(),
                           in_ms(firing.host), in_ms(firing.ready));
      }
      ++position;
    }
  }
  return json ? json_text(root) : csv;
}

}  // namespace ddpsim
