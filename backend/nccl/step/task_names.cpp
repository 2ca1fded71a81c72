#include "backend/nccl/step/task_names.hpp"

#include <fmt/format.h>

namespace ddpsim {
std::string name_of(const Task& task, const Schedule& schedule, const Workload& workload) {
  std::string text(ddpsim::name_of(task.operation));
  if (task.step != nobody) {
    const Bucket& bucket = schedule.buckets[at(task.bucket)];
    const CommStep& step = bucket.steps[at(task.step)];
    text = ddpsim::name_of(step.action);
    if (step.tensor != nobody)
      return text + " " + workload.parameters[at(bucket.parameters[at(step.tensor)])].name;
  }
  if (task.operation == Operation::forward)
    return text + " " + workload.layers[at(task.layer)].forward[at(task.kernel)].name;
  if (task.operation == Operation::backward)
    return text + " " + workload.layers[at(task.layer)].backward[at(task.kernel)].name;
  if (task.parameter != nobody) return text + " " + workload.parameters[at(task.parameter)].name;
  if (task.bucket != nobody)
    return text + fmt::format(" bucket {} ({})", task.bucket,
                              to_string(schedule.buckets[at(task.bucket)].size));
  return text;
}

}  // namespace ddpsim
