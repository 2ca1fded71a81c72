#include "tools/import/intervals.hpp"

#include <algorithm>

namespace ddpsim {

Coverage::Coverage(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  for (const Interval& interval : intervals) {
    if (merged_.empty() || interval.first > merged_.back().second)
      merged_.push_back(interval);
    else
      merged_.back().second = std::max(merged_.back().second, interval.second);
  }
  for (const auto& [begin, end] : merged_) before_.push_back(before_.back() + (end - begin));
}

Duration Coverage::until(Duration time) const {
  const auto after = std::upper_bound(
      merged_.begin(), merged_.end(), time,
      [](Duration value, const Interval& interval) { return value < interval.first; });
  if (after == merged_.begin()) return {};
  const auto index = static_cast<std::size_t>(after - merged_.begin()) - 1;
  return before_[index] + (std::min(time, merged_[index].second) - merged_[index].first);
}

}  // namespace ddpsim
