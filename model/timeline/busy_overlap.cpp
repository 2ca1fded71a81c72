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

/// Does the task only copy memory of the device, and compute nothing? (A copy into a bucket usually
/// divides on the way.)
bool only_copies(const RankOfJob& rank, const program::Task& task) {
  const Operation operation = rank.job.works[task.work].operation;
  if (operation == Operation::copy_out) return true;
  const auto* scale = std::get_if<program::Scale>(&rank.action_of(task));
  return operation == Operation::copy_in && scale != nullptr && scale->factor == 1;
}

}  // namespace

BusyOverlap busy_overlap(const RankOfJob& rank) {
  std::vector<Edge> collectives, kernels;
  for (std::size_t i = 0; i < rank.times.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    if (rank.communicates(task))
      add_edges(collectives, rank.times[i]);
    else if (is_kernel(rank.job.works[task.work].operation) && !only_copies(rank, task))
      add_edges(kernels, rank.times[i]);
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
