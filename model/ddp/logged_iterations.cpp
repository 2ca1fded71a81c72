#include "model/ddp/logged_iterations.hpp"

namespace ddpsim {

std::vector<LoggedIteration> logged_iterations(const Schedule& schedule) {
  std::vector<LoggedIteration> passes;
  const auto count = static_cast<std::uint32_t>(schedule.tasks.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const Task& task = schedule.tasks[i];
    if (i == 0 || task.micro_batch != schedule.tasks[i - 1].micro_batch) passes.push_back({i, 0});
    if (finishes_bucket(schedule, task)) passes.back().end = i + 1;
  }
  std::erase_if(passes, [](const LoggedIteration& pass) { return pass.end == 0; });
  return passes;
}

}  // namespace ddpsim
