#include "sim/tune/lower_bound.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

using AllReduce = BucketSteps::AllReduce;

double communication_slowdown(const AllReduce& collective) {
  return std::max(1.0, static_cast<double>(collective.beside.communication));
}

/// [gradient] The least sum of prices of contiguous buckets that hold it and all later ones, where
/// the first of them may hold earlier ones too. `price` sees a collective and whether it is the
/// last.
template <typename Price>
std::vector<Duration> least_sums(BucketSteps& steps, const std::vector<Bytes>& sizes,
                                 Price&& price) {
  const std::size_t count = sizes.size();
  std::vector<Duration> least(count + 1, Duration::max());
  least[count] = Duration::zero();
  Bytes before_end;
  for (const Bytes size : sizes) before_end += size;
  for (std::size_t end = count; end > 0; --end) {
    Bytes size = before_end;
    Duration cheapest = Duration::max();  // of the buckets from k or earlier to `end`
    for (std::size_t k = 0; k < end; ++k) {
      cheapest = std::min(cheapest, price(steps.price(size), end == count));
      least[k] = std::min(least[k], cheapest + least[end]);
      size = size - sizes[k];
    }
    before_end = before_end - sizes[end - 1];
  }
  return least;
}

}  // namespace

Duration lower_bound(BucketSteps& steps, Duration ideal) {
  const PartitionProblem problem = steps.ideal();
  const BucketSteps::Backward backward = steps.backward();
  const std::size_t count = problem.sizes.size();
  const bool last_alone = backward.left.back() == Duration::zero();

  const std::vector<Duration> lost =
      least_sums(steps, problem.sizes, [&](const AllReduce& collective, bool last) {
        if (last && last_alone) return collective.work;
        const double compute =
            compute_slowdown(collective.beside, backward.memory_fraction, backward.launch_rate);
        const double share = communication_slowdown(collective) * (1 - 1 / compute);
        return share < 1 ? scaled(collective.work, std::max(share, 0.0)) : collective.work;
      });

  double slowest = 1;
  for (std::size_t begin = 0; begin < count; ++begin) {
    Bytes size;
    for (std::size_t end = begin; end < count; ++end) {
      size += problem.sizes[end];
      slowest = std::max(slowest, communication_slowdown(steps.price(size)));
    }
  }
  const std::vector<Duration> slowed =
      least_sums(steps, problem.sizes, [&](const AllReduce& collective, bool last) {
        const double slowdown = last && last_alone ? slowest : communication_slowdown(collective);
        return scaled(collective.work, slowdown);
      });

  // Simulated, every change of rate rounds to the nearest tick, some two for each kernel.
  const Duration rounding{4 * (backward.kernels + static_cast<std::int64_t>(count))};
  Duration bound = ideal;
  for (std::size_t k = 0; k < count; ++k) {
    const Duration left = backward.left[k];
    const Duration begin = backward.at[k] - Instant{};
    const Duration transfer = slowed[k] > left ? scaled(slowed[k] - left, 1 / slowest) : Duration{};
    bound = std::max(bound,
                     begin + left + std::max(lost[k], transfer) + problem.after.back() - rounding);
  }
  return bound;
}

}  // namespace ddpsim
