#include "tools/study/tune_request.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "sim/tune/parallel.hpp"
#include "tools/study/flag_values.hpp"

namespace ddpsim {
namespace {

/// How far apart repeats of these measurements are, as a share: all of them together at their 90th
/// percentile against their medians, or at their medians against their 10th, whichever is more.
/// Small ones, whose repeats scatter most, count for little, as in a step.
template <typename Measured>
double joint_spread(const std::vector<Measured>& measured) {
  double low = 0, median = 0, high = 0;
  for (const Measured& each : measured) {
    low += in_seconds(each.time.low);
    median += in_seconds(each.time.median);
    high += in_seconds(each.time.high);
  }
  return low > 0 && median > 0 ? std::max({high / median, median / low, 1.0}) - 1 : 0;
}

Objective objective_of(const TuneRequest& request) {
  const auto objective =
      std::find_if(all_objectives.begin(), all_objectives.end(),
                   [&](Objective each) { return name_of(each) == request.objective; });
  if (objective == all_objectives.end())
    throw InputError(
        fmt::format("--objective {}: expected step, exposed or memory", request.objective));
  return *objective;
}

int threads_of(const TuneRequest& request) {
  return request.threads.empty() ? allowed_cores()
                                 : count_of("--threads", request.threads, 1, 1024);
}

}  // namespace

TuneOptions tune_options(const TuneRequest& request, const Scenario& scenario) {
  TuneOptions options;
  options.objective = objective_of(request);
  options.within = share_of("--within", request.within);
  options.noise = share_of("--noise", request.noise);
  if (!request.largest_bucket.empty())
    options.largest_bucket = sizes_of("--largest-bucket", request.largest_bucket)[0];
  if (!request.uncertainty.empty()) {
    const double share = share_of("--uncertainty", request.uncertainty);
    if (share >= 1)
      throw InputError(fmt::format(
          "--uncertainty {}: expected a share below 100%: the link and the kernels may be that "
          "much slower or faster",
          request.uncertainty));
    options.link_uncertainty = options.compute_uncertainty = share;
  } else if (scenario.cluster.calibration) {
    options.link_uncertainty = joint_spread(scenario.cluster.calibration->all_reduce);
    options.compute_uncertainty = joint_spread(scenario.cluster.calibration->tasks);
  }
  options.threads = threads_of(request);
  return options;
}

ShardOptions shard_options(const TuneRequest& request, Strategy strategy) {
  const auto check_not = [&](const char* flag, const std::string& given) {
    if (!given.empty())
      throw InputError(fmt::format(
          "{} {}: is of buckets, and training.strategy is {}, which shards: leave it out", flag,
          given, name_of(strategy)));
  };
  check_not("--largest-bucket", request.largest_bucket);
  check_not("--uncertainty", request.uncertainty);
  return {.least_memory = objective_of(request) == Objective::memory,
          .within = share_of("--within", request.within),
          .noise = share_of("--noise", request.noise),
          .threads = threads_of(request),
          .progress = {}};
}

}  // namespace ddpsim
