#pragma once

#include <span>
#include <vector>

#include "model/parallel/training.hpp"
#include "model/parallel/write/step_works.hpp"

namespace ddpsim {

using Buckets = std::vector<std::vector<int>>;  ///< parameter indices of each, in launch order

/// All caps from `low` to `high` make these buckets.
struct CapRange {
  Bytes low, high;  ///< both included; the last range goes to `no_cap`
  Buckets buckets;
};
inline constexpr Bytes no_cap{std::int64_t{1} << 62};

/// Every bucketing that some cap leads to, smallest cap first: finitely many, as a cap acts only by
/// which sums of gradients reach it.
///
///     torch            a bucket of S bytes was closed by the cap: the caps up to S close it as
///                      well, so the next bucketing begins at the smallest such S, plus one
///     before_overflow  the cap kept a gradient of g out of a bucket of S: caps below S + g do so
///                      too, and the next bucketing begins at the smallest S + g
///
/// `first_cap` is the limit of the first bucket of every type; none: it is the cap like the others.
/// The rule, and whether DDP rebuilds its buckets, are `training`'s; steady state.
/// Cost: one assignment per bucketing.
std::vector<CapRange> all_caps(const StepWorks& works, const Training& training,
                               std::optional<Bytes> first_cap);

/// The ranges of the first bucket's cap while all others are unbounded. `buckets` of each are
/// those under an unbounded cap.
std::vector<CapRange> all_first_caps(const StepWorks& works, const Training& training);

/// The buckets of one pair of caps, or of one cap for all.
Buckets buckets_of(const StepWorks& works, const Training& training, std::optional<Bytes> first_cap,
                   Bytes cap);

/// All caps for gradients of one type, none sparse, under torch's rule, in the quick form: ends of
/// contiguous buckets (see BucketSteps), for what follows the first `begin` gradients.
class ContiguousCaps {
 public:
  explicit ContiguousCaps(std::span<const Bytes> sizes);  ///< by arrival, each above zero

  /// Ends of the buckets of `cap` from position `begin` on are appended to `ends`. Returns the
  /// largest cap that makes the same.
  Bytes append(int begin, Bytes cap, std::vector<int>& ends) const;
  int size() const { return static_cast<int>(before_.size()) - 1; }
  Bytes before(int position) const { return before_[static_cast<std::size_t>(position)]; }

 private:
  std::vector<Bytes> before_;  // [position] sum of the gradients before it
};

/// Can `training` on these gradients be searched in the quick form?
bool all_contiguous(const StepWorks& works, const Training& training);

}  // namespace ddpsim
