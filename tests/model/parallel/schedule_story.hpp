#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/model/flat_step.hpp"
#include "tests/model/workload/timed.hpp"

/// Schedules in words.
namespace ddpsim::timed {

/// Three parameters on two layers. Backward runs kernels 1.0, 1.1 and 0.0; parameters 2 and 1
/// arrive after the first of them, parameter 0 after the last.
inline Workload two_layers() {
  using namespace std::chrono_literals;
  Workload workload;
  workload.name = "two layers";
  workload.layers.push_back({"first", {kernel(1ms)}, {kernel(2ms)}});
  workload.layers.push_back({"second", {kernel(1ms)}, {kernel(2ms), kernel(3ms)}});
  workload.parameters = {parameter("a", {4000}, 0, 0), parameter("b", {400}, 1, 0),
                         parameter("c", {40}, 1, 0)};
  workload.optimizer = 1ms;
  return workload;
}

/// Two ranks; all-reduces take 2 ms and a second for each GB.
inline Cluster two_ranks(bool synchronous = false) {
  using namespace std::chrono_literals;
  Cluster cluster = ring(2, 1ms, gigabytes_per_second(1));
  cluster.device.synchronous = synchronous;
  return cluster;
}

/// Of two_layers on two ranks.
inline StepWorks two_layer_works(bool synchronous = false) {
  return works_of(two_layers(), two_ranks(synchronous));
}

/// Each gradient is a bucket once they are rebuilt: a cap of one byte.
inline Training small_caps() {
  Training training;
  training.bucket_cap = Bytes{1};
  training.first_bucket_cap.reset();
  return training;
}

/// "backward 1.0", "copy in 2 -> 0" (a parameter, and its bucket), "all-reduce 0".
inline std::string words(const FlatTask& task) {
  std::string result(name_of(task.operation));
  if (task.layer != nobody)
    result += " " + std::to_string(task.layer) + "." + std::to_string(task.kernel);
  if (task.parameter != nobody) result += " " + std::to_string(task.parameter);
  if (task.bucket != nobody)
    result += (task.parameter != nobody ? " -> " : " ") + std::to_string(task.bucket);
  return result;
}

using Story = std::vector<std::string>;

inline Story story(const FlatStep& schedule) {
  Story lines;
  for (const FlatTask& task : schedule.tasks) lines.push_back(words(task));
  return lines;
}

/// What `task` waits for.
inline Story waits_for(const FlatStep& schedule, const std::string& task) {
  const Story lines = story(schedule);
  const auto found = std::find(lines.begin(), lines.end(), task);
  if (found == lines.end()) return {"there is no " + task};
  Story result;
  const auto index = static_cast<std::size_t>(found - lines.begin());
  for (const std::uint32_t earlier : schedule.waits_for(schedule.tasks[index]))
    result.push_back(lines[earlier]);
  return result;
}

inline int count(const FlatStep& schedule, Operation operation) {
  return static_cast<int>(
      std::count_if(schedule.tasks.begin(), schedule.tasks.end(),
                    [&](const FlatTask& t) { return t.operation == operation; }));
}

inline int count(const FlatStep& schedule, Operation operation, int micro_batch) {
  return static_cast<int>(std::count_if(
      schedule.tasks.begin(), schedule.tasks.end(),
      [&](const FlatTask& t) { return t.operation == operation && t.micro_batch == micro_batch; }));
}

}  // namespace ddpsim::timed
