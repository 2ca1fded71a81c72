#pragma once

#include <optional>
#include <string_view>

#include "model/program/job.hpp"

namespace ddpsim {

/// Says in a phrase why steps under different buckets differ in more than where each bucket's
/// all-reduce is launched and waited for. Empty: they differ in nothing else. Finds out by looking
/// at steps what their policy says of them (BucketMarks::why_more).
///
/// `whole` is a step with all gradients in one bucket, `each` the same step with a bucket for each
/// gradient, in the same order. Every bucketing that is contiguous in that order lies between the
/// two: whatever it does, one of the two does as well, or does nowhere. So it is enough to look at
/// these two. They have to be alike but for the buckets' all-reduces and waits, and to have the
/// form that the fast step (bucket_steps.hpp) knows:
///
///   * One rank's work on a host, a compute stream and a communication stream; only the host of a
///     synchronous device ever stands still.
///   * A collective waits for the kernels enqueued before it, a wait for one collective, and
///     nothing else for anything but its stream.
///   * Every micro-batch that communicates is a round: each gradient is put in its bucket, in the
///     same order in each round; a bucket is all-reduced as soon as it and those before it are
///     full; nothing else is sent between buckets; then, bucket by bucket, a wait and the copies
///     back, if there are any.
///
/// An example that qualifies: DDP with gradients of one type. One that does not: gradients copied
/// into their bucket together, for then the kernels differ as well. Cost: linear in the tasks.
std::optional<std::string_view> why_more_than_buckets(const program::Job& whole,
                                                      const program::Job& each);

}  // namespace ddpsim
