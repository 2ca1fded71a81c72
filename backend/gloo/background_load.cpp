#include "backend/gloo/background_load.hpp"

#include <algorithm>
#include <thread>

namespace ddpsim {

void BackgroundLoad::begin() {
  connection_.threads().submit([this] {
    for (bool more = true; more;) {
      if (pause_ > Duration::zero()) std::this_thread::sleep_for(pause_);
      values_.back() = computed_ ? 1.0F : 0.0F;
      const Instant arrival = connection_.now();
      connection_.communicator().all_reduce(values_);
      spans_.emplace_back(arrival, connection_.now());
      more = values_.back() == 0;
    }
  });
}

std::vector<Instant> BackgroundLoad::arrivals() const {
  std::vector<Instant> arrivals;
  for (const auto& [arrival, end] : spans_) arrivals.push_back(arrival);
  return arrivals;
}

void BackgroundLoad::report(std::span<const Instant> last, Instant computed_at,
                            RankRun& run) const {
  run.background_begun = last.front() - Instant{};
  Duration under_way{};
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const Instant end = spans_[i].second;
    under_way += std::max(Duration::zero(), std::min(end, computed_at) - last[i]);
    run.background_ended += end < computed_at ? 1 : 0;
  }
  const Duration since = computed_at - last.front();
  if (since <= Duration::zero())
    run.background_busy = 0;  // too late
  else if (pause_ > Duration::zero())
    run.background_busy = std::min(1.0, in_seconds(under_way) / in_seconds(since));
}

}  // namespace ddpsim
