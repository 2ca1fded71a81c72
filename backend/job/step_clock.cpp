#include "backend/job/step_clock.hpp"

#include <algorithm>

namespace ddpsim {

std::vector<Instant> StepClock::latest(std::vector<Instant> mine) {
  for (Instant& each : mine) each = zero_ + each.time_since_epoch();
  mine = clock_.latest(std::move(mine));
  for (Instant& each : mine) each = Instant{each - zero_};
  return mine;
}

void start_with_last_rank(std::span<const std::uint32_t> collectives, std::span<const Instant> last,
                          std::vector<TaskTimes>& times) {
  for (std::size_t c = 0; c < collectives.size(); ++c) {
    TaskTimes& of_task = times[collectives[c]];
    of_task.start = std::min(of_task.end, last[c]);
  }
}

}  // namespace ddpsim
