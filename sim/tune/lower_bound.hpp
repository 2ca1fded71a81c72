#pragma once

#include "sim/tune/bucket_steps.hpp"

namespace ddpsim {

/// No contiguous partition makes a shorter step than the greatest of three bounds. When the hook of
/// gradient k has fired, not before at_k, the device still has `left_k` of the backward pass before
/// it, gradients k and later are still to be reduced, and `after` of the last one follows that. For
/// every k:
///
///     ideal           the best of the ideal problem (best_partition), where nothing slows
///                     anything: there every instant is a sum or a maximum of durations, and
///                     interference only makes durations longer
///
///     lost compute    at + left + D + after
///                     A bucket reduced beside kernels costs them at least cost s (1 - 1 / c), one
///                     reduced alone costs its own time; D is the least sum of the smaller of the
///                     two.
///
///     slow transfer   at + left + (Z - left) / s_max + after
///                     In a moment beside kernels a bucket gets on by 1 / s of it, alone by all of
///                     it; so its cost times s is used up at most 1 or s_max times as fast as time
///                     goes by, and for `left` at least at the former; Z is the least sum of
///                     cost s.
///
/// where s is a bucket's communication slowdown, c the compute slowdown beside it, and sums are
/// over the buckets that hold k and later gradients. The last bucket has no backward pass left
/// beside it, if none is left when the last gradient is there.
///
/// `ideal` is the step of best_partition(steps.ideal()). Cost: n^2 prices.
Duration lower_bound(BucketSteps& steps, Duration ideal);

}  // namespace ddpsim
