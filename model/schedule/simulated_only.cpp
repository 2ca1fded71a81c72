#include "model/schedule/simulated_only.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// Outside of comm hooks, backends send all-reduces, broadcasts, and the all-gathers of a sparse
/// gradient's parts.
bool is_sent(const Schedule& schedule, const Task& task) {
  if (!is_collective(task.operation) || task.step != nobody) return true;
  const Message message = schedule.work_of(task).message;
  switch (collective_of(task.operation)) {
    case CollectiveOperation::all_reduce:
    case CollectiveOperation::broadcast:
      return true;
    case CollectiveOperation::all_gather:
      return message == Message::sparse_shape || message == Message::sparse_indices ||
             message == Message::sparse_values;
    case CollectiveOperation::reduce_scatter:
      return false;
  }
  return false;
}

}  // namespace

void check_not_simulated_only(const Schedule& schedule) {
  for (const Task& task : schedule.tasks)
    if (task.operation == Operation::all_reduce && task.divisor != 1)
      throw std::invalid_argument(
          "training.average: all_reduce is simulated only: for real, take it out (gradients are "
          "divided then)");
  for (const Work& work : schedule.works)
    if (work.message == Message::own)
      throw std::invalid_argument(
          "collectives of the model itself are simulated only: for real, take `collectives` out of "
          "its description");
  for (const Task& task : schedule.tasks)
    if (!is_sent(schedule, task))
      throw std::invalid_argument(
          fmt::format("{} of {} outside of a comm hook is simulated only: take it out",
                      name_of(task.operation), name_of(schedule.work_of(task).message)));
  for (const Bucket& bucket : schedule.buckets)
    if (bucket.holds_gradients)
      throw std::invalid_argument(
          "training.flat_views: true is simulated only: for real, take it out (gradients are "
          "copied back then)");
}

}  // namespace ddpsim
