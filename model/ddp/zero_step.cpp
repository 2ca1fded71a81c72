#include "model/ddp/zero_step.hpp"

#include <algorithm>

#include "model/ddp/bucketing.hpp"

namespace ddpsim {

std::string zero_step_refusal(const Training& training) {
  if (never_rebuilt(training.find_unused_parameters, training.static_graph))
    return "ZeRO's hooks begin once DDP has rebuilt its buckets, which it never does with "
           "find_unused_parameters alone: set static_graph: true, or take find_unused_parameters "
           "out";
  if (training.skip_all_reduce_unused_params)
    return "ZeRO's hooks count on every bucket: take skip_all_reduce_unused_params out";
  if (training.join) return "ZeRO's hooks with uneven inputs are not modelled: take join out";
  return "";
}

int different_ranks(const Schedule& schedule, int ranks) {
  std::int32_t last = nobody;
  for (const Task& task : schedule.tasks)  // whose a broadcast is makes no different work
    if (!is_collective(task.operation)) last = std::max(last, task.owner);
  return last == nobody ? 1 : std::min(ranks, last + 2);  // one more, that owns nothing
}

Schedule schedule_of_rank(Schedule schedule, int rank) {
  for (Task& task : schedule.tasks) {
    if (task.owner == nobody || task.owner == rank || is_collective(task.operation)) continue;
    task.host = task.work = task.last_launch = Duration::zero();
    task.launches = 1;
    if (task.operation != Operation::wait) continue;
    task.host_waits = false;
    task.after_count = 0;
  }
  return schedule;
}

}  // namespace ddpsim
