#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// What is going to happen, soonest first.
///
/// Order: earlier first; at one instant, in order of scheduling. That makes every run of a schedule
/// pop the same events in the same order. A heap of small values; nothing is removed early (an
/// event that no longer matters is recognised by its owner when it is popped). No allocation once
/// it has grown.
template <typename Payload>
class EventQueue {
 public:
  void push(Instant at, Payload payload) {
    heap_.push_back({at, next_++, payload});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  bool empty() const { return heap_.empty(); }
  Instant next_instant() const { return heap_.front().at; }

  Payload pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Payload payload = heap_.back().payload;
    heap_.pop_back();
    return payload;
  }

 private:
  struct Entry {
    Instant at;
    std::uint64_t sequence;
    Payload payload;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
  }

  std::vector<Entry> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace ddpsim
