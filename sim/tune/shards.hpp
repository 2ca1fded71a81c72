#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/scenario/scenario.hpp"
#include "model/ways/ways.hpp"
#include "sim/predict/step_model.hpp"

namespace ddpsim {

/// A way to shard, and the step it leads to.
struct Sharding : WayToShard {
  int units = 0;  ///< or buckets
  Bytes largest;  ///< of a unit's, or a bucket's, parameters, whole
  Duration step{};
  /// By how much it exceeds a step without communication that updates as much.
  Duration exposed{};
  Duration bound{};  ///< its step is no shorter (shards.cpp)
  Bytes peak;        ///< of a rank's memory; zero: not known
  bool fits = true;  ///< on the device, as far as that is known
};

/// What is looked for among those that fit. `memory`: the smallest peak among those whose step is
/// within `within` of the shortest.
struct ShardOptions {
  bool least_memory = false;
  double within = 0.01;
  double noise = 0.01;  ///< a gain below it is not worth a changed setting
  int threads = 1;
  /// Called by the caller's own thread, often. May throw, which ends the search.
  std::function<void(const std::string& what, double fraction)> progress;
};

struct ShardTuning {
  std::vector<Sharding> tried;  ///< those that fit first, of these the shortest step first
  std::size_t standard = 0;     ///< of `tried`: the usual settings
  std::size_t given = 0;        ///< likewise: what the scenario says
  std::size_t best = 0;         ///< likewise: by what is looked for
  /// Likewise: of those within 0.1 % of the best's step (no more memory, if that is looked for) the
  /// one with the fewest settings to change, and of these the best; the given one where that gains
  /// no more than `noise` and the given one fits.
  std::size_t advised = 0;
  bool pays = false;       ///< it is another than the given one
  bool any_fits = true;    ///< else all are compared as if they did
  Duration without{};      ///< the shortest step without communication
  Duration lower_bound{};  ///< the least of all bounds

  const Sharding& standard_one() const { return tried[standard]; }
  const Sharding& given_one() const { return tried[given]; }
  const Sharding& best_one() const { return tried[best]; }
  const Sharding& advised_one() const { return tried[advised]; }
  /// What the advice saves of the scenario's step.
  double gain() const;
};

/// Simulates the ways to set the scenario's strategy, which shards (model/ways). All else is as
/// in the scenario; its costs are those of `model`. The step is the steady state's. Results do not
/// depend on `threads`.
/// Cost: up to a thousand steps, of 3 ms each for a transformer of 32 blocks.
/// Throws std::invalid_argument where the scenario's own sharding is refused, and for one rank.
ShardTuning tune_shards(const Scenario& scenario, const StepModel& model,
                        const ShardOptions& options = {});

}  // namespace ddpsim
