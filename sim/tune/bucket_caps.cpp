#include "sim/tune/bucket_caps.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "model/parallel/policy/bucket_plan.hpp"

namespace ddpsim {
namespace {

/// Which of the two caps is varied: that of the first bucket or that of the others.
enum class Varied : std::uint8_t { first, others };

class CapSearch {
 public:
  CapSearch(const StepWorks& works, const Training& training, std::optional<Bytes> first,
            Varied varied)
      : works_(works), training_(training), first_(first), varied_(varied) {
    if (initial_stay()) {
      order_.resize(works.gradients.size());
      std::iota(order_.begin(), order_.end(), 0);
    } else {
      order_ = works.arrival;
    }
    place_.resize(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) place_[at(order_[i])] = i;
  }

  std::vector<CapRange> all() const {
    std::vector<CapRange> ranges;
    for (Bytes cap{1}; cap < no_cap;) {
      const std::vector<BucketAssignment> assigned = assign(cap);
      const Bytes next = next_cap(assigned, cap);
      Buckets buckets;
      for (const BucketAssignment& bucket : assigned) buckets.push_back(bucket.parameters);
      const Bytes high = next < no_cap ? next - Bytes{1} : no_cap;
      // The buckets stay the same: one that the cap closed is now what is left over. (If gradients
      // have several types, their order changes, but under a first cap only beside other caps.)
      if (varied_ == Varied::others && !ranges.empty() && ranges.back().buckets == buckets)
        ranges.back().high = high;
      else
        ranges.push_back({cap, high, std::move(buckets)});
      cap = next;
    }
    return ranges;
  }

  std::vector<BucketAssignment> assign(Bytes cap) const {
    DdpBucketing ddp = bucketing_of(training_);
    ddp.limits_at_construction = ddp.first_limit_last = false;
    if (varied_ == Varied::first)
      ddp.limits = {cap, no_cap};
    else if (first_)
      ddp.limits = {*first_, cap};
    else
      ddp.limits = {cap};
    return initial_stay() ? initial_buckets(works_.gradients, ddp)
                          : steady_buckets(works_.gradients, works_.arrival, ddp);
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  bool initial_stay() const {
    return never_rebuilt(training_.find_unused_parameters, training_.static_graph);
  }

  DType type_of(int index) const { return stored_type(works_.gradients[at(index)].dtype); }

  /// The smallest cap beyond `cap` that may make other buckets.
  Bytes next_cap(const std::vector<BucketAssignment>& assigned, Bytes cap) const {
    std::vector<DType> begun;  // types whose first bucket was seen
    Bytes next = no_cap;
    // In the order in which the buckets were filled: the first bucket of a type is the one that was
    // begun first.
    std::vector<const BucketAssignment*> filled;
    for (const BucketAssignment& bucket : assigned)
      if (bucket.limit > Bytes{0}) filled.push_back(&bucket);
    std::sort(filled.begin(), filled.end(), [&](const auto* a, const auto* b) {
      return place_[at(a->parameters.front())] < place_[at(b->parameters.front())];
    });
    for (const BucketAssignment* bucket : filled) {
      const DType type = type_of(bucket->parameters.front());
      const bool first = std::find(begun.begin(), begun.end(), type) == begun.end();
      if (first) begun.push_back(type);
      const bool by_varied = varied_ == Varied::first ? first : !(first && first_);
      if (by_varied) next = std::min(next, same_below(*bucket, cap));
    }
    return next;
  }

  /// The first cap under which this bucket would not close where it did.
  Bytes same_below(const BucketAssignment& bucket, Bytes cap) const {
    Bytes size;
    for (const int index : bucket.parameters) size += works_.gradients[at(index)].size;
    if (training_.bucket_rule == BucketRule::torch) return size >= cap ? size + Bytes{1} : no_cap;
    const DType type = type_of(bucket.parameters.front());
    for (std::size_t i = place_[at(bucket.parameters.back())] + 1; i < order_.size(); ++i) {
      const GradientInfo& gradient = works_.gradients[at(order_[i])];
      if (!gradient.sparse && type_of(order_[i]) == type) return size + gradient.size;
    }
    return no_cap;
  }

  const StepWorks& works_;
  const Training& training_;
  std::optional<Bytes> first_;
  Varied varied_;
  std::vector<int> order_;          // parameters as they are assigned
  std::vector<std::size_t> place_;  // [parameter] in that order
};

}  // namespace

std::vector<CapRange> all_caps(const StepWorks& works, const Training& training,
                               std::optional<Bytes> first_cap) {
  return CapSearch(works, training, first_cap, Varied::others).all();
}

std::vector<CapRange> all_first_caps(const StepWorks& works, const Training& training) {
  return CapSearch(works, training, std::nullopt, Varied::first).all();
}

Buckets buckets_of(const StepWorks& works, const Training& training, std::optional<Bytes> first_cap,
                   Bytes cap) {
  Buckets buckets;
  for (BucketAssignment& bucket : CapSearch(works, training, first_cap, Varied::others).assign(cap))
    buckets.push_back(std::move(bucket.parameters));
  return buckets;
}

ContiguousCaps::ContiguousCaps(std::span<const Bytes> sizes) : before_(1) {
  for (const Bytes size : sizes) before_.push_back(before_.back() + size);
}

Bytes ContiguousCaps::append(int begin, Bytes cap, std::vector<int>& ends) const {
  Bytes same = no_cap;
  const auto last = before_.end();
  auto from = before_.begin() + begin;
  while (from + 1 != last) {
    const auto end = std::lower_bound(from + 1, last, *from + cap);
    if (end == last || end + 1 == last) {  // whatever is left, closed by the cap or not
      ends.push_back(size());
      break;
    }
    same = std::min(same, *end - *from);
    ends.push_back(static_cast<int>(end - before_.begin()));
    from = end;
  }
  return same;
}

bool all_contiguous(const StepWorks& works, const Training& training) {
  if (training.bucket_rule != BucketRule::torch) return false;
  if (never_rebuilt(training.find_unused_parameters, training.static_graph)) return false;
  const GradientInfo& first = works.gradients.front();
  return std::all_of(works.gradients.begin(), works.gradients.end(), [&](const GradientInfo& each) {
    return !each.sparse && stored_type(each.dtype) == stored_type(first.dtype);
  });
}

}  // namespace ddpsim
