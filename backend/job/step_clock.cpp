#include "backend/job/step_clock.hpp"

namespace ddpsim {

std::vector<Instant> StepClock::latest(std::vector<Instant> mine) {
  for (Instant& each : mine) each = zero_ + each.time_since_epoch();
  mine = clock_.latest(std::move(mine));
  for (Instant& each : mine) each = Instant{each - zero_};
  return mine;
}

}  // namespace ddpsim
