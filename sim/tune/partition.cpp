#include "sim/tune/partition.hpp"

#include <algorithm>

#include "model/base/index.hpp"

namespace ddpsim {
namespace {

/// One way to cut the gradients before a border.
struct Way {
  Instant end{};    // of its last all-reduce
  Duration step{};  // that its buckets lead to, at least
  int buckets = 0;
  int begin = 0;  // of its last bucket
  int from = 0;   // index of the way it goes on from, at that border
};

bool beats(const Way& one, const Way& other) {
  return one.end <= other.end && one.step <= other.step &&
         (one.end < other.end || one.step < other.step || one.buckets <= other.buckets);
}

/// Adds a way unless a known one beats it, and removes the known ways that it beats.
void add(std::vector<Way>& ways, const Way& way) {
  for (const Way& known : ways)
    if (beats(known, way)) return;
  std::erase_if(ways, [&](const Way& known) { return beats(way, known); });
  ways.push_back(way);
}

}  // namespace

Partition best_partition(const PartitionProblem& problem) {
  const auto count = static_cast<int>(problem.sizes.size());
  std::vector<std::vector<Way>> ways(at(count) + 1);
  ways[0].push_back({Instant{}, problem.without, 0, 0, 0});
  for (int end = 1; end <= count; ++end) {
    Bytes size;
    for (int begin = end - 1; begin >= 0; --begin) {
      size += problem.sizes[at(begin)];
      const Duration cost = problem.cost(size);
      for (std::size_t from = 0; from < ways[at(begin)].size(); ++from) {
        Way way = ways[at(begin)][from];
        way.end = std::max(way.end, problem.ready[at(end - 1)]) + cost;
        way.step = std::max(way.step, way.end - Instant{} + problem.after[at(begin)]);
        ++way.buckets;
        way.begin = begin;
        way.from = static_cast<int>(from);
        add(ways[at(end)], way);
      }
    }
  }
  const auto& complete = ways[at(count)];
  const Way* way =
      &*std::min_element(complete.begin(), complete.end(), [](const Way& a, const Way& b) {
        return a.step != b.step ? a.step < b.step : a.buckets < b.buckets;
      });
  Partition best{{}, way->step};
  for (int end = count; end > 0;) {
    best.ends.push_back(end);
    const int from = way->from;
    end = way->begin;
    way = &ways[at(end)][at(from)];
  }
  std::reverse(best.ends.begin(), best.ends.end());
  return best;
}

}  // namespace ddpsim
