#include "model/timeline/busy_overlap.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace ddpsim {
namespace {

using Edge = std::pair<Instant, int>;  ///< at this instant so many more run

/// Adds the edges of a task: one more runs from its start to its end.
void add_edges(std::vector<Edge>& edges, const TaskTimes& times) {
  if (times.end <= times.start) return;
  edges.emplace_back(times.start, 1);
  edges.emplace_back(times.end, -1);
}

}  // namespace

bool only_copies(const Task& task) {
  if (task.operation == Operation::copy_in) return task.divisor == 1;
  return task.operation == Operation::copy_out || task.operation == Operation::copy_to_host ||
         task.operation == Operation::copy_to_device;
}

BusyOverlap busy_overlap(const Schedule& schedule, const Timeline& timeline, int rank) {
  const std::vector<TaskTimes>& times = timeline.ranks[static_cast<std::size_t>(rank)];
  std::vector<Edge> collectives, kernels;
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    if (is_collective(task.operation))
      add_edges(collectives, times[i]);
    else if (is_kernel(task.operation) && !only_copies(task))
      add_edges(kernels, times[i]);
  }
  std::sort(collectives.begin(), collectives.end());
  std::sort(kernels.begin(), kernels.end());
  BusyOverlap found;
  int communicating = 0, computing = 0;
  Instant now{};
  auto collective = collectives.begin();
  auto kernel = kernels.begin();
  while (collective != collectives.end()) {
    const bool kernel_first = kernel != kernels.end() && kernel->first <= collective->first;
    const Edge edge = kernel_first ? *kernel++ : *collective++;
    if (communicating > 0) {
      found.communicating += edge.first - now;
      if (computing > 0) found.beside += edge.first - now;
    }
    (kernel_first ? computing : communicating) += edge.second;
    now = edge.first;
  }
  return found;
}

}  // namespace ddpsim
