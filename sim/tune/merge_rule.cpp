#include "sim/tune/merge_rule.hpp"

#include <algorithm>

namespace ddpsim {

LinearCost fit_linear(const PartitionProblem& problem) {
  Bytes all;
  for (const Bytes size : problem.sizes) all += size;
  const Bytes smallest = *std::min_element(problem.sizes.begin(), problem.sizes.end());
  // Minimises the sum of ((a + b s) / t - 1)^2: two linear equations in a and b.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  std::vector<double> ratios;  // t / s
  for (Bytes size = smallest;; size = 2 * size) {
    size = std::min(size, all);
    const double time = in_seconds(problem.cost(size)), s = static_cast<double>(size.count);
    if (time > 0) {
      aa += 1 / (time * time);
      ab += s / (time * time);
      bb += s * s / (time * time);
      a1 += 1 / time;
      b1 += s / time;
    }
    if (size == all) break;
  }
  const double determinant = aa * bb - ab * ab;
  LinearCost line;
  if (determinant > 1e-12 * aa * bb) {
    line.startup = (a1 * bb - b1 * ab) / determinant;
    line.per_byte = (b1 * aa - a1 * ab) / determinant;
  }
  if (line.per_byte <= 0 && aa > 0) line = {a1 / aa, 0};
  if (line.startup < 0 && bb > 0) line = {0, b1 / bb};
  return line;
}

std::vector<int> merge_rule(const PartitionProblem& problem, const LinearCost& cost) {
  const Duration startup = from_seconds(cost.startup);
  std::vector<int> ends;
  Instant free{};  // the all-reduce before has ended
  Bytes size;
  const std::size_t count = problem.sizes.size();
  for (std::size_t i = 0; i < count; ++i) {
    size += problem.sizes[i];
    const Instant start = std::max(free, problem.ready[i]);
    if (i + 1 < count && problem.ready[i + 1] < start + startup) continue;
    ends.push_back(static_cast<int>(i) + 1);
    free = start + startup + from_seconds(cost.per_byte * static_cast<double>(size.count));
    size = {};
  }
  return ends;
}

}  // namespace ddpsim
