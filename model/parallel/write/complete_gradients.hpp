#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "model/parallel/write/job_memory.hpp"

namespace ddpsim::program {

/// The gradients of a micro-batch, of which the user's code may read those that are complete, but
/// for what is being reduced.
class CompleteGradients {
 public:
  CompleteGradients() = default;
  /// In the order in which they become complete; none of them is yet.
  CompleteGradients(JobMemory& memory, const std::vector<Slice>& gradients)
      : listed_(memory.list(gradients)), taken_(gradients.size(), false) {
    listed_.count = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      places_[{gradients[i].buffer, gradients[i].begin}] = i;
  }

  /// So many more are.
  void add(std::size_t more) { listed_.count += static_cast<std::uint32_t>(more); }
  /// It is being reduced, if it is one of them.
  void take(const Slice& gradient) {
    const auto place = places_.find({gradient.buffer, gradient.begin});
    if (place == places_.end()) return;
    taken_[place->second] = any_taken_ = true;
    while (first_left_ < taken_.size() && taken_[first_left_]) ++first_left_;
  }

  Operands listed() const { return listed_; }
  Operands readable(JobMemory& memory) const {
    if (!any_taken_) return listed_;
    std::vector<Slice> left;
    for (std::size_t i = first_left_; i < listed_.count; ++i)
      if (!taken_[i]) left.push_back(memory.job.own.of(listed_)[i]);
    return memory.list(left);
  }

 private:
  Operands listed_;
  std::map<std::pair<BufferId, std::int64_t>, std::size_t> places_;
  std::vector<bool> taken_;
  bool any_taken_ = false;
  std::size_t first_left_ = 0;
};

}  // namespace ddpsim::program
