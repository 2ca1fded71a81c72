#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/questions.hpp"
#include "sim/tune/bucket_steps.hpp"

namespace ddpsim {

/// What differs from the scenario in one question of a WhatIfs; absent: as the scenario has it.
struct Differences {
  std::optional<Strategy> strategy;
  std::optional<Bytes> bucket_cap, first_bucket_cap;
  std::optional<std::vector<Bytes>> bucket_caps;  ///< a cap for each bucket, the last repeating
  // For the link that decides: between the nodes, or inside the only one.
  std::optional<Duration> latency;
  std::optional<Bandwidth> bandwidth;
  double compute = 1;                  ///< forward and backward take so many times as long
  std::optional<double> slowest_rank;  ///< so many times as late as a typical one
};

/// One scenario, read and priced once, for question after question of how long a step is. A step
/// with other buckets or over another link takes microseconds: the tuner's own simulation of it.
/// Other kernels cost a new price list, which is kept for the next questions. What was fitted to
/// measured rows stays, whatever differs. For several threads at once.
class WhatIfs {
 public:
  explicit WhatIfs(const Question& question);

  /// The step that `predict` gives for such a scenario. Throws std::invalid_argument as that does,
  /// and if a difference has no effect: a link's latency where a table was measured, or one rank.
  Duration step(const Differences& differences);

  const Scenario& scenario() const { return scenario_; }

 private:
  /// What the costs of kernels depend on.
  struct Kernels {
    double compute = 1, slowest_rank = -1;
    auto operator<=>(const Kernels&) const = default;
  };
  /// What the costs of collectives depend on; negative: as in the scenario.
  struct Links {
    std::int64_t latency = -1;
    double bandwidth = -1;
    bool operator==(const Links&) const = default;
  };
  struct Priced {
    CostModel costs;
    Links links{};
    std::optional<BucketSteps> buckets{};
  };

  Training training_of(const Differences& differences) const;
  Priced& priced(const Kernels& kernels);
  void use(Priced& priced, const Links& links) const;

  Scenario scenario_;
  StepModel model_;
  std::optional<BucketSteps> buckets_;  ///< at the scenario's own prices
  std::map<Kernels, Priced> kept_;
  std::mutex mutex_;
};

}  // namespace ddpsim
