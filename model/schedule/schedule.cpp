#include "model/schedule/schedule.hpp"

#include <algorithm>

namespace ddpsim {

std::string_view name_of(Stream stream) {
  switch (stream) {
    case Stream::host:
      return "host";
    case Stream::compute:
      return "compute";
    case Stream::communication:
      return "communication";
    case Stream::aside:
      return "aside";
    case Stream::to_host:
      return "to host";
    case Stream::to_device:
      return "to device";
  }
  return "?";
}

bool is_note(const Schedule& schedule, const Task& task) {
  if (!is_collective(task.operation) || task.bucket != nobody) return false;
  const Message message = schedule.work_of(task).message;
  return message != Message::gradients && message != Message::buffers && message != Message::own &&
         message != Message::parameters;
}

bool computes_aside(const Schedule& schedule) {
  return std::any_of(schedule.works.begin(), schedule.works.end(), [](const Work& work) {
    return work.aside && work.operation != Operation::synchronize;
  });
}

int different_ranks(const Schedule& schedule, int ranks) {
  std::int32_t last = nobody;
  for (const Task& task : schedule.tasks)  // whose a broadcast is makes no different work
    if (task.owner > last && !is_collective(task.operation)) last = task.owner;
  return last == nobody ? 1 : std::min(ranks, last + 2);  // one more, that owns nothing
}

}  // namespace ddpsim
