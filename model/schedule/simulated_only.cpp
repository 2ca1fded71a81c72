#include "model/schedule/simulated_only.hpp"

#include <stdexcept>

namespace ddpsim {

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
  for (const Bucket& bucket : schedule.buckets)
    if (bucket.holds_gradients)
      throw std::invalid_argument(
          "training.flat_views: true is simulated only: for real, take it out (gradients are "
          "copied back then)");
}

}  // namespace ddpsim
