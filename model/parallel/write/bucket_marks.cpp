#include "model/parallel/write/bucket_marks.hpp"

namespace ddpsim {

BucketMarks::BucketMarks(const std::vector<int>& arrival)
    : position_of_(arrival.size()), is_filled_(arrival.size(), false) {
  for (std::size_t i = 0; i < arrival.size(); ++i)
    position_of_[at(arrival[i])] = static_cast<std::int32_t>(i);
}

void BucketMarks::filled(std::int32_t deed, std::int32_t parameter) {
  add(BucketMark::Kind::filled, deed, parameter);
  if (full_ == is_filled_.size()) {
    is_filled_.assign(is_filled_.size(), false);
    full_ = 0;
  }
  is_filled_[at(position_of_[at(parameter)])] = true;
  while (full_ < is_filled_.size() && is_filled_[full_]) ++full_;
}

void BucketMarks::awaited(std::int32_t deed, std::int32_t result) {
  add(BucketMark::Kind::awaited, deed);
  if (result != launched_) step_has("a bucket's result is not that of its all-reduce");
}

void BucketMarks::sends_other() {
  if (full_ > 0 && full_ < is_filled_.size()) others_have("something else is sent between buckets");
}

std::optional<std::string_view> BucketMarks::why_more() const {
  if (of_step_) return of_step_;
  if (launched_ == nobody) return "not every bucket is sent and waited for";
  return of_others_;
}

}  // namespace ddpsim
