#include "backend/measure/measure_step.hpp"

#include <algorithm>
#include <cstring>

#include "backend/device_error.hpp"

namespace ddpsim {

Timeline measure_step(Backend& backend, const Schedule& schedule, const RunOptions& options,
                      std::optional<Sent>* sent) {
  const RankRun run = backend.run(schedule, options);
  if (sent != nullptr) *sent = run.sent;
  Timeline timeline;
  for (const auto& bytes : backend.gather(std::as_bytes(std::span(run.times)))) {
    if (bytes.size() != run.times.size() * sizeof(TaskTimes))
      throw DeviceError("the ranks ran different schedules");
    auto& times = timeline.ranks.emplace_back(run.times.size());
    if (!bytes.empty()) std::memcpy(times.data(), bytes.data(), bytes.size());
    for (const TaskTimes& at : times) timeline.end = std::max(timeline.end, at.end);
  }
  return timeline;
}

bool any_rank(Backend& backend, bool mine) {
  double value = mine ? 1 : 0;
  backend.sum({&value, 1});
  return value > 0;
}

}  // namespace ddpsim
