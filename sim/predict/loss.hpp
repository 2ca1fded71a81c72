#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "model/base/quantity.hpp"
#include "sim/predict/step.hpp"
#include "sim/predict/step_model.hpp"

namespace ddpsim {

/// What makes a step of many ranks longer than that of one rank that trains by itself.
enum class Loss : std::uint8_t {
  /// The step has ended, and its node has not made the batches of all its ranks yet; one rank by
  /// itself has all cores of its node to itself.
  input,
  interference,  ///< kernels and collectives slow each other while both run
  slowest_rank,  ///< the ranks wait for those that compute slower (CostModel::make_ranks_even)
  transfer,      ///< bytes on their way that no computation hides
  latency,       ///< the part of collectives that moves no bytes, where no computation hides it
  copies,        ///< kernels for communication: into and out of buckets, divisions, a comm hook's
  launches,      ///< the host: hooks, enqueueing copies and collectives, handing them over
  /// What is left: the host's waits for the device and for other ranks, collectives in their order.
  /// Negative where the strategy computes less than `none` does, as an optimizer that is shared out
  /// among the ranks.
  rest,
};
inline constexpr std::array all_losses{Loss::input,    Loss::interference, Loss::slowest_rank,
                                       Loss::transfer, Loss::latency,      Loss::copies,
                                       Loss::launches, Loss::rest};
std::string_view name_of(Loss loss);

/// Where a step's time beyond `one_rank` goes.
struct StepLoss {
  Duration one_rank{};                              ///< the step of one rank that trains by itself
  std::array<Duration, all_losses.size()> parts{};  ///< [Loss] sum to the step minus `one_rank`

  Duration by(Loss loss) const { return parts[static_cast<std::size_t>(loss)]; }
  Duration sum() const { return std::accumulate(parts.begin(), parts.end(), Duration{}); }
};

/// The loss of `step`, which `model` predicted, part by part.
///
/// The step is simulated again and again, each time with one more of the losses taken out, twice:
/// in the order of `all_losses`, and in the opposite order behind interference, which only the wait
/// for input goes before: nothing else can shorten a step that waits for it. Each part is the
/// mean of what taking it out saves in the two, so that two causes either of which would be hidden
/// have half each, whichever stands first (of two causes this mean is their Shapley value). After
/// the last one the step is `one_rank`: that of the strategy `none` with no rank slower than the
/// others. So the parts sum to the step minus `one_rank`, to the tick. Interference goes first in
/// both, because without it every time is a maximum or a sum of others, so that what becomes
/// shorter never makes the step longer. Where a comm hook's kernels take turns with those of the
/// backward pass it may, by a little: then the part counts as nothing, and the next one from the
/// shortest step so far.
///
/// Example: ranks compute for 18 ms, the slowest for 27; then one all-reduce of 0.5 ms latency and
/// 3 ms transfer. The step takes 30.5 ms: 18 of one rank, 9 slowest rank, 3 transfer, 0.5 latency.
/// Were 3 ms of the all-reduce hidden, taking out either of its parts would save the 0.5 ms that
/// are exposed: they would have 0.25 each.
///
/// Cost: two simulations for each part. Throws as `predict` does.
StepLoss step_loss(const StepModel& model, const Step& step);

/// The step of one rank that trains by itself. Without communication a rank of many differs from
/// one by itself only in that the step ends with the slowest, and that its node makes batches for
/// others too.
Duration one_rank_step(const StepModel& model, const Training& training);

}  // namespace ddpsim
