#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backend/backend.hpp"
#include "model/cost/calibration.hpp"

namespace ddpsim {

/// How the computation of a step and a stream of all-reduces beside it slow each other.
///
/// A round is a second or so of computation with the stream, and as much without. Of each round's
/// means the medians over rounds count, so that a round in which the machine stalls does not.
/// Everything communicates: every rank calls the same.
class MeasureInterference {
 public:
  struct Settings {
    int repeats = 15;
    Duration patience{};    ///< longest time for one size, some three times as long
    double step_seconds{};  ///< what computing the step takes alone
    /// Before every round: false, and everyone stops.
    std::function<bool(Bytes size)> go_on;
  };

  /// `step` does not communicate. All must outlive this object.
  MeasureInterference(Backend& backend, const program::Job& step, Settings settings);

  /// Beside all-reduces of this size, which take `idle` when the ranks are idle and run one after
  /// the other or, if `one_by_one`, with pauses. Nothing where too little of it was met, or it
  /// would take too long; `stopped` then says whether go_on was false.
  std::optional<MeasuredInterference> beside(Bytes size, bool one_by_one, Duration idle);
  bool stopped() const { return stopped_; }

  /// About how long the next sizes may take each: fewer rounds are made then, one at least.
  void may_take(Duration time) { allowed_ = time; }

  /// From issuing an all-reduce to having it on the communication thread of every rank, kernels
  /// running: what each round of the last `beside` saw.
  const std::vector<Duration>& starts() const { return starts_; }

 private:
  /// Time in GEMMs, and in kernels that move memory, over all ranks.
  struct ByKind {
    Duration arithmetic{}, memory{};
  };
  struct Round {
    Duration quick, slow;  ///< the computation, alone and with the stream
    Duration met;          ///< of the latter, with the stream really beside it
    ByKind quick_kinds, slow_kinds;
  };

  bool measure_rounds(const program::Job& alone, const program::Job& beside, Bytes size,
                      Duration pause);
  Round measure_round(const program::Job& alone, const program::Job& beside, Duration pause);
  MeasuredInterference result(Bytes size, Duration idle, double busy) const;
  ByKind by_kind(const program::Job& step, const RankRun& run);
  template <typename Pick>
  Duration middle(Pick pick) const;

  Backend& backend_;
  const program::Job& step_;
  Settings settings_;
  Duration allowed_ = Duration::max();
  bool stopped_ = false;
  std::vector<Round> rounds_;
  std::vector<Duration> starts_, transfers_;  ///< [round]; a transfer: one of this rank's stream
};

}  // namespace ddpsim
