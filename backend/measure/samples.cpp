#include "backend/measure/samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace ddpsim {

Spread spread_of(std::vector<Duration> samples) {
  if (samples.empty()) throw std::invalid_argument("nothing was measured");
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(samples.size() - 1);
    return samples[static_cast<std::size_t>(std::lround(place))];
  };
  Spread spread{at(0.5), at(0.1), at(0.9), static_cast<int>(samples.size()), 0};
  const Duration reach = 3 * (at(0.75) - at(0.25));
  for (const Duration sample : samples)
    if (sample < at(0.25) - reach || sample > at(0.75) + reach) ++spread.outliers;
  return spread;
}

Duration sum_of(const std::vector<Duration>& times) {
  Duration sum{};
  for (const Duration time : times) sum += time;
  return sum;
}

Duration mean_of(const std::vector<Duration>& times) {
  return sum_of(times) / static_cast<std::int64_t>(times.size());
}

std::vector<Duration> gathered(Backend& backend, const std::vector<Duration>& mine) {
  std::vector<Duration> all;
  for (const auto& bytes : backend.gather(std::as_bytes(std::span(mine)))) {
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(Duration));
    if (!bytes.empty()) std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

Duration mean_over_ranks(Backend& backend, Duration mine) {
  return mean_of(gathered(backend, {mine}));
}

}  // namespace ddpsim
