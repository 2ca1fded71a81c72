#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/parallel/training.hpp"
#include "sim/predict/step_model.hpp"
#include "sim/tune/bucket_caps.hpp"

namespace ddpsim {

/// A way to make buckets, and the step it leads to.
struct Choice {
  std::optional<Bytes> first_cap;  ///< none: `cap` holds for the first bucket too
  Bytes cap;                       ///< zero: no cap makes these buckets
  Bytes highest_cap;               ///< the largest cap that makes the same
  Bytes highest_first;             ///< likewise, where there is a first cap
  Buckets buckets;
  Duration step{};
  Duration input_wait{};  ///< of the step, the wait for batches
  Bytes largest;          ///< bytes of its largest bucket
  /// Its step in each of Advice::corners, of what is advised or told beside it; else empty.
  std::vector<Duration> with_errors;
};

/// What is looked for. `exposed`: the step less the step without communication, a constant, waits
/// for batches included: it ranks as `step` does. `memory`: the smallest largest bucket among those
/// whose step is within `within` of the shortest.
enum class Objective : std::uint8_t { step, exposed, memory };
inline constexpr std::array all_objectives{Objective::step, Objective::exposed, Objective::memory};
constexpr std::string_view name_of(Objective objective) {
  constexpr std::array<std::string_view, 3> names{"step", "exposed", "memory"};
  return names[static_cast<std::size_t>(objective)];
}

struct TuneOptions {
  Objective objective = Objective::step;
  double within = 0.01;                 ///< for the memory objective
  std::optional<Bytes> largest_bucket;  ///< none may be larger
  double link_uncertainty = 0;          ///< all-reduces may take so much more, or that factor less
  double compute_uncertainty = 0;       ///< likewise kernels
  double noise = 0.01;                  ///< a gain below it is not worth a changed setting
  int threads = 1;
  std::uint64_t polish = 20'000;  ///< steps simulated at most to improve the free partition
  /// Called by the caller's own thread, often. May throw, which ends the search.
  std::function<void(const std::string& what, double fraction)> progress;
};

/// The longest step that is still accepted if the shortest one is `shortest`.
inline Duration longest_step(const TuneOptions& options, Duration shortest) {
  return options.objective == Objective::memory && shortest < Duration::max()
             ? scaled(shortest, 1 + options.within)
             : shortest;
}

/// One combination of errors in what the prediction rests on.
struct Corner {
  double link = 1, compute = 1;  ///< factors on times
  Duration standard{};           ///< the step of DDP's default buckets
  Duration best{};               ///< of the cap that is best here
  Duration recommended{};
};

/// What to deploy.
struct Advice {
  /// A cap: of the least regret, or, within 0.1 % of it, of the fewest buckets, and of those a
  /// round one (recommend.hpp); the default where changing it does not pay.
  Choice choice;
  bool pays = false;
  std::vector<Corner> corners;  ///< empty without uncertainty; the first is the prediction itself
  /// The choice's step over the best, less 1; in the worst corner if there are any.
  double regret = 0;
  double regret_of_shortest = 0;  ///< likewise, of the cap whose predicted step is the shortest
  std::uint64_t evaluated = 0;    ///< steps simulated for it
};

/// Everything there is to say about the buckets of one scenario.
struct Tuning {
  Duration without{};           ///< the step without communication
  Duration without_wait{};      ///< of it, the wait for batches
  Duration lower_bound{};       ///< no contiguous partition is faster (lower_bound.hpp)
  Duration lower_bound_wait{};  ///< of it, the wait for batches
  /// The bound is the step's passes alone, as nothing bounds what collectives add to them: with a
  /// comm hook, and wherever else each step is simulated as a whole.
  bool bound_of_passes = false;
  Choice standard;  ///< DDP's defaults: 1 MiB, then 25 MiB
  Choice given;     ///< what the scenario says
  Choice one_bucket, per_parameter;
  std::optional<Choice> merged;  ///< MG-WFBP's rule; none where gradients are of several types
  std::vector<Choice> caps;      ///< all, the first cap as it is where one is given; growing
  Choice best_cap;               ///< of those
  Choice best_even_cap;          ///< where the first bucket has the cap of the others
  Choice best_overflow_cap;      ///< where a bucket closes before it would exceed the cap
  /// Over all first caps and caps; none for more than 800 gradients, or 300 whose buckets are not
  /// contiguous in arrival order (several types, sparse ones, find_unused_parameters, another
  /// rule), or 40 where every step is simulated as a whole (a comm hook).
  std::optional<Choice> best_pair;
  std::string why_no_pair;  ///< "" if there is one
  /// Over all contiguous partitions: the best of the ideal problem and of all the above, polished
  /// by simulation; none where gradients are of several types.
  std::optional<Choice> best_partition;
  bool partition_proven = false;  ///< it meets the lower bound

  /// Buckets close by another rule than torch's, so that DDP's default is none of them.
  bool other_rule = false;
  bool standard_allowed = true;  ///< is no bucket of what the advice is weighed against too large?
  Advice advice;
  std::uint64_t evaluated = 0;  ///< steps simulated

  /// What the advice is weighed against: DDP's default, or, under another rule, the scenario's
  /// buckets.
  const Choice& compared() const { return other_rule ? given : standard; }

  /// Exposed communication, as of StepMetrics: waits for batches are left out of both steps.
  Duration exposed(Duration step, Duration wait) const {
    return (step - wait) - (without - without_wait);
  }
  Duration exposed(const Choice& choice) const { return exposed(choice.step, choice.input_wait); }

  /// What the advice saves of that step.
  double gain() const { return 1 - in_seconds(advice.choice.step) / in_seconds(compared().step); }
};

/// Searches. `training` says everything but the buckets, whose rule it has; gradients are
/// taken to travel in buckets, in the steady state. Results do not depend on `threads`.
/// Cost, of n gradients of one type: a step a cap (at most n^2 / 2, usually about 2 n), up to
/// n^3 / 2 steps for pairs, n^2 prices and their table for partitions. 435 gradients of a
/// transformer take 0.7 s on one core, 800 of random sizes 20 s.
/// Throws std::invalid_argument if no partition respects `largest_bucket`, for one rank, and for
/// more than 3000 gradients.
Tuning tune(const StepModel& model, const Training& training, const TuneOptions& options = {});

}  // namespace ddpsim
