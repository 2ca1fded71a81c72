#include "sim/tune/local_search.hpp"

#include <algorithm>
#include <array>

namespace ddpsim {
namespace {

constexpr std::array shifts{1, -1, 2, -2, 4, -4, 8, -8, 16, -16};
constexpr std::size_t most_starts = 3;

class Polisher {
 public:
  Polisher(BucketSteps& steps, Duration bound, std::uint64_t budget,
           const std::function<bool(const std::vector<int>&)>& fits)
      : steps_(steps), bound_(bound), budget_(budget), fits_(fits) {}

  void climb(Partition& best) {
    bool better = true;
    while (better && budget_ > 0 && best.step > bound_) {
      better = false;
      // The last border is the end of all gradients and is never moved.
      for (std::size_t i = 0; i + 1 < best.ends.size(); ++i) better |= without(best, i);
      for (std::size_t i = 0; i + 1 < best.ends.size(); ++i)
        for (const int shift : shifts) better |= moved(best, i, shift);
      for (int border = 1; border < steps_.size(); ++border) better |= with(best, border);
    }
  }

 private:
  bool without(Partition& best, std::size_t i) {
    trial_ = best.ends;
    trial_.erase(trial_.begin() + static_cast<std::ptrdiff_t>(i));
    return keep(best);
  }
  bool moved(Partition& best, std::size_t i, int shift) {
    if (i + 1 >= best.ends.size()) return false;  // fewer borders than before
    const int to = best.ends[i] + shift;
    if (to <= (i > 0 ? best.ends[i - 1] : 0) || to >= best.ends[i + 1]) return false;
    trial_ = best.ends;
    trial_[i] = to;
    return keep(best);
  }
  bool with(Partition& best, int border) {
    const auto place = std::lower_bound(best.ends.begin(), best.ends.end(), border);
    if (*place == border) return false;
    trial_ = best.ends;
    trial_.insert(trial_.begin() + (place - best.ends.begin()), border);
    return keep(best);
  }
  bool keep(Partition& best) {
    if (budget_ == 0 || best.step <= bound_ || !fits_(trial_)) return false;
    --budget_;
    const Duration step = steps_.of(trial_, best.step);
    if (step > best.step || (step == best.step && trial_.size() >= best.ends.size())) return false;
    best = {trial_, step};
    return true;
  }

  BucketSteps& steps_;
  Duration bound_;
  std::uint64_t budget_;
  const std::function<bool(const std::vector<int>&)>& fits_;
  std::vector<int> trial_;
};

}  // namespace

Partition local_search(BucketSteps& steps, const std::vector<std::vector<int>>& starts,
                       Duration bound, std::uint64_t budget,
                       const std::function<bool(const std::vector<int>&)>& fits) {
  std::vector<Partition> partitions;
  for (const auto& ends : starts)
    if (std::none_of(partitions.begin(), partitions.end(),
                     [&](const Partition& known) { return known.ends == ends; }))
      partitions.push_back({ends, steps.of(ends)});
  std::stable_sort(partitions.begin(), partitions.end(),
                   [](const Partition& a, const Partition& b) { return a.step < b.step; });
  partitions.resize(std::min(partitions.size(), most_starts));
  for (Partition& each : partitions)
    Polisher(steps, bound, budget / partitions.size(), fits).climb(each);
  return *std::min_element(partitions.begin(), partitions.end(),
                           [](const Partition& a, const Partition& b) { return a.step < b.step; });
}

}  // namespace ddpsim
