#include "tools/sweep/point_threads.hpp"

#include <stdexcept>

#include "tools/report/notes.hpp"

namespace ddpsim {

PointThreads::PointThreads(int threads, std::function<PointResult(std::size_t)> compute)
    : compute_(std::move(compute)) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::exception& problem) {
    if (threads_.empty())
      throw std::runtime_error(fmt::format(
          "no thread could be started ({}): ulimit -u and ulimit -v limit them", problem.what()));
    note("note: of {} threads {} could be started, which compute all points ({})", threads,
         threads_.size(), problem.what());
  }
}

PointThreads::~PointThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PointThreads::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const std::size_t point = waiting_.front();
    waiting_.pop_front();
    ++under_way_;
    lock.unlock();
    PointResult result;
    std::exception_ptr failure;
    try {
      result = compute_(point);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --under_way_;
    if (failure)
      failure_ = failure;
    else
      computed_.emplace_back(point, std::move(result));
    done_.notify_one();
  }
}

void PointThreads::add(const std::vector<std::size_t>& points) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), points.begin(), points.end());
  }
  more_.notify_all();
}

void PointThreads::drop() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
}

std::vector<ComputedPoint> PointThreads::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, patience, [this] { return failure_ || !computed_.empty(); });
  if (failure_) std::rethrow_exception(failure_);
  return std::exchange(computed_, {});
}

std::size_t PointThreads::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

std::size_t PointThreads::open() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() + under_way_ + computed_.size();
}

}  // namespace ddpsim
