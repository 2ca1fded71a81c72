#pragma once

#include "sim/bucketed_steps.hpp"

namespace ddpsim {

/// No contiguous partition makes a shorter step than the greater of
///
///     the best of the ideal problem (best_partition), where nothing slows anything: there every
///     instant is a sum or a maximum of durations, and interference only makes durations longer;
///
///     at_k + left_k + D_k + after[last], for each gradient k: when its hook has fired, `left_k` of the
///     backward pass is before the device, and all gradients from k on are still to be reduced. A
///     bucket reduced beside kernels costs them at least
///         loss = cost x communication slowdown x (1 - 1 / compute slowdown),
///     one reduced alone costs its own time; D_k is the least sum of min(loss, cost) over the buckets
///     that hold k and what follows. The last bucket has no backward pass left beside it.
///
/// `ideal` is the solution of steps.ideal(). Cost: n^2 / 2 prices.
Duration lower_bound(BucketedSteps& steps, Duration ideal);

}  // namespace ddpsim
