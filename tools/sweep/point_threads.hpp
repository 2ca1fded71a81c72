#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tools/sweep/sweep.hpp"

namespace ddpsim {

/// A point of a grid, and what was computed for it.
using ComputedPoint = std::pair<std::size_t, PointResult>;

/// Threads that compute points. Its functions are for the thread that made it.
class PointThreads {
 public:
  /// `compute` is called by `threads` threads at once, or by fewer, which is noted: by eight for
  /// each processor at most, and by as many as the system starts. Throws std::runtime_error if that
  /// is none.
  PointThreads(int threads, std::function<PointResult(std::size_t)> compute);
  /// Points not begun are left out; waits for those under way.
  ~PointThreads();
  PointThreads(const PointThreads&) = delete;
  PointThreads& operator=(const PointThreads&) = delete;

  void add(const std::vector<std::size_t>& points);
  /// Forgets the points no thread has begun.
  void drop();
  /// What has been computed since the last call; waits for the first of it, no longer than
  /// `patience`. Rethrows what `compute` threw.
  std::vector<ComputedPoint> take(std::chrono::milliseconds patience);

  int threads() const { return static_cast<int>(threads_.size()); }
  std::size_t waiting() const;  ///< points no thread has begun
  std::size_t open() const;     ///< points added and neither dropped nor taken

 private:
  void work(std::size_t number);
  void keep(std::size_t count);  ///< ends the threads beyond

  std::function<PointResult(std::size_t)> compute_;
  mutable std::mutex mutex_;
  std::condition_variable more_, done_;
  std::deque<std::size_t> waiting_;
  std::size_t under_way_ = 0, kept_ = std::numeric_limits<std::size_t>::max();
  std::vector<ComputedPoint> computed_;
  std::exception_ptr failure_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ddpsim
