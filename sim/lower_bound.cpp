#include "sim/lower_bound.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

/// The least a bucket adds to the step, wherever it runs.
Duration least_price(const BucketedSteps::Collective& collective, float memory_fraction) {
  const double slowdown = compute_slowdown(collective.beside, memory_fraction);
  const double communication = std::max(1.0, static_cast<double>(collective.beside.communication));
  const double lost = communication * (1 - 1 / slowdown);
  return std::min(collective.work, std::max(Duration::zero(), scaled(collective.work, lost)));
}

}  // namespace

Duration lower_bound(BucketedSteps& steps, Duration ideal) {
  const PartitionProblem problem = steps.ideal();
  const BucketedSteps::Backward backward = steps.backward();
  const std::size_t count = problem.sizes.size();
  const bool nothing_beside_last = backward.left.back() == Duration::zero();
  std::vector<Duration> least(count + 1, Duration::max());  // D
  least[count] = Duration::zero();
  for (std::size_t end = count; end > 0; --end) {
    if (least[end] == Duration::max()) continue;
    // A bucket that begins at or before k and ends at `end`: the cheapest of those.
    Bytes size;
    for (std::size_t i = 0; i < end; ++i) size += problem.sizes[i];
    Duration cheapest = Duration::max();
    for (std::size_t k = 0; k < end; ++k) {
      const BucketedSteps::Collective& collective = steps.price(size);
      cheapest = std::min(cheapest, end == count && nothing_beside_last
                                        ? collective.work
                                        : least_price(collective, backward.memory_fraction));
      least[k] = std::min(least[k], cheapest + least[end]);
      size = size - problem.sizes[k];
    }
  }
  // Simulated, every change of rate rounds to the nearest tick, some two for each kernel.
  const Duration rounding{4 * (backward.kernels + static_cast<std::int64_t>(count))};
  Duration bound = ideal;
  for (std::size_t k = 0; k < count; ++k)
    bound = std::max(bound, backward.at[k] - Instant{} + backward.left[k] + least[k] +
                                problem.after.back() - rounding);
  return bound;
}

}  // namespace ddpsim
