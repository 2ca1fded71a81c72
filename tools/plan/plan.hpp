#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/parallel/strategy.hpp"
#include "model/parallel/training.hpp"
#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"
#include "tools/report/records/record.hpp"
#include "tools/study/carried_fit.hpp"
#include "tools/study/known_accuracy.hpp"

namespace ddpsim {

/// What a plan is asked for. Keys of `set` that a plan chooses otherwise stay as they are set.
struct PlanRequest {
  std::string file;
  std::vector<Setting> set;
  bool laws_only = false;
  std::vector<int> gpus;     ///< in all; empty: as many as the scenario has
  std::vector<int> batches;  ///< of a rank; empty: the scenario's, and powers of two
  /// Empty: bucketed, those of ZeRO that the scenario compares, and fsdp.
  std::vector<Strategy> strategies;
};

/// A number of GPUs, as nodes.
struct PlannedSize {
  int ranks = 1;
  int nodes = 1;                  ///< of as many ranks each; 1 where they differ
  std::vector<Setting> settings;  ///< that make the scenario's cluster so large
};

/// A strategy, with its settings that a plan chooses.
struct PlannedWay {
  Strategy strategy = Strategy::bucketed;
  std::vector<Setting> settings;
  std::string name;         ///< for a narrow table: "fsdp, no reshard"
  bool replicates = false;  ///< a replica of the shards on each node: of sizes of several nodes

  /// Ways that are like this one but for its checkpoints, by index: this one is tried with batches
  /// that do not fit `less` and fit `more`.
  struct Between {
    std::size_t less = 0, more = 0;
  };
  std::optional<Between> between{};
};

/// What became of a candidate.
enum class Verdict : std::uint8_t {
  fits,       ///< its memory is within the device's
  unknown,    ///< what it takes, or what the device has, is not known
  too_large,  ///< it takes more than the device has; its step was not simulated
  refused,    ///< by the scenario, or by a law
};

/// A way to train on a number of GPUs with a batch.
struct PlanCandidate {
  std::size_t size = 0, way = 0;  ///< of TrainingPlan::sizes and ::ways
  int batch = 0;                  ///< samples of a micro-batch of one rank; 0: not known
  std::vector<Setting> settings;  ///< of its size, way and batch
  Verdict verdict = Verdict::refused;
  Bytes peak{};                    ///< of a rank's memory; zero: refused
  bool reserves_too_much = false;  ///< it fits, but the pools of PyTorch's allocator would not
  double rate = 0;  ///< tokens a second of all ranks (samples, or micro-batches); 0: not simulated
  double device_seconds = 0;  ///< of all devices, for one of these
  Record figures{};           ///< columns of candidate_columns()
  std::string error{};        ///< why it is refused
  FsdpSettings sharding{};    ///< of fsdp, simulated
  std::string code{};         ///< of the same: the Python that wraps the model so
  std::string options{};      ///< of a ZeRO, simulated: as its project takes them (zero_code)
  /// In what it is another than the measured rows that its costs were fitted to.
  std::vector<OtherThanMeasured> others{};

  bool is_simulated() const { return verdict == Verdict::fits || verdict == Verdict::unknown; }
};

/// What candidates are ordered by.
enum class PlannedRate : std::uint8_t { tokens, samples, micro_batches };

struct TrainingPlan {
  std::vector<Setting> set;  ///< keys that were given beside the file, for all of the plan
  Scenario scenario;         ///< at the largest size
  Knowledge knowledge{};     ///< what steps of it are predicted from
  PlannedRate rate = PlannedRate::tokens;
  std::vector<PlannedSize> sizes;
  std::vector<PlannedWay> ways;
  std::vector<PlanCandidate> candidates;  ///< those simulated, the quickest first, then the others
  int batches_end = 0;  ///< the largest batch, where a larger one might fit and was not tried
  std::vector<std::string> notes;

  std::size_t simulated() const;  ///< the first so many of `candidates`
  /// [candidate simulated] those, the one of the least device time for its work first.
  std::vector<std::size_t> cheapest() const;
};

/// Tries every way to train (ways.hpp) on every number of GPUs, with growing batches: unless they
/// are given, up to the first that takes more memory than the device has. A step that is known to
/// take more is not simulated. `watch` hears which part of the work is done, from 0 to 1, by one
/// thread at a time.
/// Throws InputError for what cannot be made: a number of GPUs that are no whole nodes and no part
/// of one, a batch of a model that was measured or described with another, a scenario that is
/// refused at one of the sizes, or under all strategies.
TrainingPlan make_plan(const PlanRequest& request, const std::function<void(double)>& watch = {});

/// The columns of `plan --csv`, and the keys of a candidate in JSON.
const std::vector<Field>& candidate_columns();

}  // namespace ddpsim
