#include "tools/study/shown_memory.hpp"

#include <algorithm>

#include "model/parallel/memory/held_memory.hpp"
#include "model/timeline/memory_times.hpp"

namespace ddpsim {
namespace {

using program::Holds;

ShownMemory shown(const MemoryPoint& point) {
  const program::MemoryByKind& bytes = point.bytes;
  return {
      point.at,
      {bytes[Holds::parameter] + bytes[Holds::gathered] + bytes[Holds::module_buffer] +
           bytes[Holds::frozen] + bytes[Holds::input] + bytes[Holds::workspace],
       bytes[Holds::optimizer], bytes[Holds::bucket] + bytes[Holds::scattered] + bytes[Holds::note],
       bytes[Holds::gradient], bytes[Holds::activation], bytes[Holds::hook],
       bytes[Holds::working]}};
}

/// For each instant the highest point, and behind it what is there in the end.
std::vector<ShownMemory> by_instant(const std::vector<MemoryPoint>& all) {
  std::vector<ShownMemory> points;
  ShownMemory last;
  const auto end_instant = [&] {
    if (!points.empty() && last != points.back()) points.push_back(last);
  };
  for (const MemoryPoint& point : all) {
    const ShownMemory next = shown(point);
    if (points.empty() || next.at != last.at) {
      end_instant();
      points.push_back(next);
    } else if (next.sum() > points.back().sum()) {
      points.back() = next;
    }
    last = next;
  }
  end_instant();
  return points;
}

bool differ(const ShownMemory& one, const ShownMemory& other, Bytes least) {
  for (std::size_t k = 0; k < one.bytes.size(); ++k)
    if (std::max(one.bytes[k], other.bytes[k]) - std::min(one.bytes[k], other.bytes[k]) >= least)
      return true;
  return false;
}

std::vector<ShownMemory> without_small_changes(const std::vector<ShownMemory>& all) {
  constexpr std::int64_t small_part = 1000;
  const auto peak = std::ranges::max_element(all, {}, &ShownMemory::sum);
  const Bytes least{std::max<std::int64_t>(1, peak->sum().count / small_part)};
  std::vector<ShownMemory> points;
  for (auto point = all.begin(); point != all.end(); ++point)
    if (point == all.begin() || point == peak || point + 1 == all.end() ||
        differ(*point, points.back(), least))
      points.push_back(*point);
  return points;
}

}  // namespace

Bytes ShownMemory::sum() const {
  Bytes sum;
  for (const Bytes each : bytes) sum += each;
  return sum;
}

std::vector<ShownMemory> shown_memory(const Scenario& scenario, const Step& step,
                                      std::size_t index) {
  const RankOfJob rank = step.rank(index);
  const program::Job whole =
      program::with_memory(rank.job, scenario.workload, scenario.optimizer, step.training);
  const std::size_t program = rank.job.program_of[step.ranks[index]];
  return without_small_changes(
      by_instant(memory_over_time(memory_along(whole, whole.programs[program]), rank.times)));
}

}  // namespace ddpsim
