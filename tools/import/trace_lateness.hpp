#pragma once

#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/import/trace_ranks.hpp"
#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// Who arrived last at an all-reduce of a step.
struct LastArrival {
  std::size_t rank = 0;   ///< index of its trace: most often the last one
  std::size_t steps = 0;  ///< in so many
  std::size_t known = 0;  ///< steps that tell the times of all ranks
  Duration waited{};      ///< by the rank that waited longest for the last, median over steps
};

/// What the other ranks waited for one.
struct RankLateness {
  std::size_t last = 0;  ///< all-reduces, of all steps, that it was the last at
  Duration waited{};     ///< a step, in the mean: by the rank that waited longest for it each time
};

/// How late ranks of one job come to its all-reduces: a rank that computes longer arrives last, and
/// all others wait for it inside of the collective.
struct Lateness {
  std::size_t steps = 0;
  std::vector<LastArrival> all_reduces;  ///< [all-reduce of gradients, as issued]
  std::vector<RankLateness> ranks;       ///< [trace]
};

/// Worked example: one all-reduce took rank 0 1.0 ms and rank 1 0.7 ms. Rank 1 was last, and
/// rank 0 waited 0.3 ms for it. Ranks that took equally long came together: nobody was last, and
/// `steps` does not count that step. Nor does an all-reduce count where the time of some rank is
/// not known.
/// `times`: of all_reduce_times(), [step][rank][all-reduce].
Lateness lateness_of(const std::vector<std::vector<TimesTaken>>& times);

void add_lateness(Page& page, const Lateness& lateness, const RankTraces& traces);
nlohmann::ordered_json lateness_json(const Lateness& lateness, const RankTraces& traces);

}  // namespace ddpsim
