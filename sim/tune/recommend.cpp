#include "sim/tune/recommend.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/tune/parallel.hpp"
#include "sim/tune/round_cap.hpp"

namespace ddpsim {
namespace {

/// Steps that differ by less are equal to whoever measures them.
constexpr double indistinguishable = 0.001;

std::vector<double> factors(double uncertainty) {
  if (uncertainty <= 0) return {1};
  return {1, 1 / (1 + uncertainty), 1 + uncertainty};
}

/// How much longer than the best, as a share.
double regret(Duration step, Duration best) {
  return in_seconds(step) / in_seconds(best) - 1;
}

std::size_t shortest_of(const std::vector<Choice>& candidates) {
  const auto shortest = std::ranges::min_element(candidates, {}, &Choice::step);
  return static_cast<std::size_t>(shortest - candidates.begin());
}

/// The one with the smallest largest bucket, of those whose steps take `longest` at most;
/// candidates.size() where none does.
std::size_t smallest_buckets(const std::vector<Choice>& candidates, Duration longest) {
  std::size_t chosen = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].step > longest) continue;
    if (chosen == candidates.size() ||
        std::tuple(candidates[i].largest, candidates[i].step, candidates[i].buckets.size()) <
            std::tuple(candidates[chosen].largest, candidates[chosen].step,
                       candidates[chosen].buckets.size()))
      chosen = i;
  }
  return chosen;
}

/// Among those as good as the best, the one of the fewest buckets that pays, if one does.
template <typename Pays>
std::size_t least_regret(const std::vector<Choice>& candidates, const std::vector<double>& regrets,
                         const Pays& pays) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (std::pair(regrets[i], candidates[i].step) < std::pair(regrets[best], candidates[best].step))
      best = i;
  std::size_t chosen = best;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (regrets[i] > regrets[best] + indistinguishable ||
        candidates[i].step > scaled(candidates[best].step, 1 + indistinguishable))
      continue;
    const bool better = pays(i), good = pays(chosen);
    const bool fewer = candidates[i].buckets.size() < candidates[chosen].buckets.size();
    if (better == good ? fewer : better) chosen = i;
  }
  return chosen;
}

/// The roundest cap that makes as many buckets as `chosen` and pays as it does, and whose step and
/// regret are no longer where they are shown: in hundredths of a ms and tenths of a per cent. No
/// step is above `longest`.
template <typename Pays>
std::size_t roundest(const std::vector<Choice>& candidates, const std::vector<double>& regrets,
                     const Pays& pays, std::size_t chosen, Duration longest) {
  constexpr Duration shown_step = std::chrono::microseconds{10};
  const auto roughness = [&](std::size_t i) {
    return round_cap(candidates[i].cap, candidates[i].highest_cap).roughness;
  };
  const auto shown_regret = [&](std::size_t i) { return std::ceil(1000 * regrets[i]); };
  std::size_t best = chosen;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].buckets.size() == candidates[chosen].buckets.size() &&
        candidates[i].step < candidates[chosen].step + shown_step &&
        candidates[i].step <= longest && shown_regret(i) <= shown_regret(chosen) &&
        pays(i) == pays(chosen) && roughness(i) < roughness(best))
      best = i;
  return best;
}

}  // namespace

Advice recommend(const BucketSteps& steps, const CostModel& costs, const TuneOptions& options,
                 const std::vector<Choice>& candidates, const Choice& standard,
                 bool standard_allowed, const std::vector<Choice*>& beside) {
  Advice advice;
  if (options.link_uncertainty > 0 || options.compute_uncertainty > 0)
    for (const double link : factors(options.link_uncertainty))
      for (const double compute : factors(options.compute_uncertainty))
        advice.corners.push_back({link, compute, {}, {}, {}});
  std::vector<std::vector<Duration>> times(advice.corners.size());  // [corner][candidate]
  for (Choice* each : beside) each->with_errors.resize(advice.corners.size());
  parallel_for(advice.corners.size(), options.threads, [&](int, std::size_t c) {
    Corner& corner = advice.corners[c];
    CostModel changed = costs;
    changed.passes.push_back({corner.compute, corner.compute, corner.compute});
    changed.copy_factor *= corner.compute;
    BucketSteps timed(steps, changed, corner.link);
    for (const Choice& each : candidates) times[c].push_back(timed.of(each.buckets));
    corner.standard = timed.of(standard.buckets);
    for (Choice* each : beside) each->with_errors[c] = timed.of(each->buckets);
    corner.best = *std::min_element(times[c].begin(), times[c].end());
    if (standard_allowed) corner.best = std::min(corner.best, corner.standard);
  });
  advice.evaluated = advice.corners.size() * (candidates.size() + 1 + beside.size());

  std::vector<double> regrets(candidates.size(), 0);  // all alike without uncertainty
  for (std::size_t c = 0; c < advice.corners.size(); ++c)
    for (std::size_t i = 0; i < candidates.size(); ++i)
      regrets[i] = std::max(regrets[i], regret(times[c][i], advice.corners[c].best));
  const auto pays = [&](std::size_t i) {
    if (in_seconds(candidates[i].step) >= in_seconds(standard.step) * (1 - options.noise))
      return false;
    for (std::size_t c = 0; c < advice.corners.size(); ++c)
      if (times[c][i] >= advice.corners[c].standard) return false;
    return true;
  };
  const std::size_t best = shortest_of(candidates);
  const Duration shortest =
      standard_allowed ? std::min(candidates[best].step, standard.step) : candidates[best].step;
  bool keeps = false;
  std::size_t chosen = 0;
  if (options.objective == Objective::memory) {
    const Duration longest = longest_step(options, shortest);
    chosen = smallest_buckets(candidates, longest);
    keeps = chosen == candidates.size() || (standard_allowed && standard.step <= longest &&
                                            standard.largest <= candidates[chosen].largest);
    advice.pays = !keeps && pays(chosen);
  } else {
    chosen = least_regret(candidates, regrets, pays);
    if (chosen != best)
      chosen = roundest(
          candidates, regrets, pays, chosen,
          std::max(candidates[chosen].step, scaled(candidates[best].step, 1 + indistinguishable)));
    advice.pays = pays(chosen);
    keeps = !advice.pays && standard_allowed;
  }
  advice.choice = keeps ? standard : candidates[chosen];
  for (std::size_t c = 0; c < advice.corners.size(); ++c) {
    Corner& corner = advice.corners[c];
    corner.recommended = keeps ? corner.standard : times[c][chosen];
  }
  if (advice.corners.empty()) {
    advice.regret = regret(advice.choice.step, shortest);
    advice.regret_of_shortest = regret(candidates[best].step, shortest);
  } else {
    advice.regret_of_shortest = regrets[best];
  }
  for (const Corner& corner : advice.corners) {
    advice.regret = std::max(advice.regret, regret(corner.recommended, corner.best));
    advice.choice.with_errors.push_back(corner.recommended);
  }
  return advice;
}

}  // namespace ddpsim
