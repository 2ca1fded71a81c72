#pragma once

#include <algorithm>
#include <array>

#include "model/timeline/metrics.hpp"

namespace ddpsim {

/// How long the passes of a step take, of which the tasks come in the order of the program.
class PassTimes {
 public:
  void forward(const TaskTimes& at) { forward_.cover(at); }
  void backward(const TaskTimes& at) { backward_.cover(at); }
  void optimizer(const TaskTimes& at) { optimizer_.cover(at); }
  /// Call before each task.
  void begin(int micro_batch) {
    if (micro_batch == micro_batch_) return;
    close();
    micro_batch_ = micro_batch;
  }
  /// Call behind the last one.
  void put_into(StepMetrics& metrics) {
    close();
    metrics.forward = forwards_;
    metrics.backward = backwards_;
    metrics.optimizer = optimizer_.length();
  }

 private:
  /// First start and last end.
  struct Window {
    Instant from = Instant::max();
    Instant to = Instant::min();

    void cover(const TaskTimes& at) {
      from = std::min(from, at.start);
      to = std::max(to, at.end);
    }
    bool seen() const { return from <= to; }
    Duration length() const { return seen() ? to - from : Duration::zero(); }
  };

  /// Backward begins where forward ended, even if its first kernel started late; without a forward
  /// pass, where the last backward ended.
  void close() {
    forwards_ += forward_.length();
    if (forward_.seen()) loss_ = forward_.to;
    if (backward_.seen()) {
      backwards_ += backward_.to - loss_;
      loss_ = backward_.to;
    }
    forward_ = backward_ = Window{};
  }

  Window forward_, backward_;  // of this micro-batch
  Window optimizer_;
  Duration forwards_{}, backwards_{};
  Instant loss_{};
  int micro_batch_ = 0;
};

/// How much of a critical path each bound has.
class BoundShares {
 public:
  void add(Bound bound, Duration length) { shares_[static_cast<std::size_t>(bound)] += length; }
  /// A collective's piece: latency first, and transfer behind it.
  void add_collective(Duration length, const TaskDetail& detail) {
    const Duration latency = std::min(length, detail.latency - detail.filling);
    add(Bound::latency, latency);
    add(Bound::bandwidth, length - latency);
  }
  /// A kernel's piece: as long as it takes by itself, and what collectives make it longer.
  void add_kernel(Duration length, const TaskDetail& detail) {
    const Duration computed =
        detail.alone > Duration::zero() ? std::min(length, detail.alone) : length;
    add(Bound::compute, computed);
    add(Bound::interference, length - computed);
  }
  Bound largest() const {
    return static_cast<Bound>(std::max_element(shares_.begin(), shares_.end()) - shares_.begin());
  }

 private:
  std::array<Duration, 5> shares_{};  // [Bound] but for input
};

}  // namespace ddpsim
