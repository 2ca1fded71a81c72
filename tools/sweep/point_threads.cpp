#include "tools/sweep/point_threads.hpp"

#include <algorithm>
#include <stdexcept>

#include "backend/device_error.hpp"
#include "backend/thread_limits.hpp"
#include "sim/tune/parallel.hpp"
#include "tools/report/writers/notes.hpp"

namespace ddpsim {
namespace {

/// More threads compute nothing sooner, and each takes memory.
constexpr int threads_per_processor = 8;

std::string processors_text() {
  const int count = allowed_cores();
  return count == 1 ? "1 processor" : fmt::format("{} processors", count);
}

}  // namespace

PointThreads::PointThreads(int threads, std::function<PointResult(std::size_t)> compute)
    : compute_(std::move(compute)) {
  const int most = threads_per_processor * allowed_cores();
  if (threads > most) {
    note("note: {} threads are no quicker than {} on {}: {} compute all points", threads, most,
         processors_text(), most);
    threads = most;
  }
  try {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this, i] { work(static_cast<std::size_t>(i)); });
  } catch (const std::exception& problem) {
    if (threads_.empty())
      throw DeviceError(
          fmt::format("no thread could be started ({}): {}", problem.what(), what_limits_threads));
    // What memory there is is for their work: as many as there are cores are as quick.
    const auto cores = static_cast<std::size_t>(allowed_cores());
    keep(std::max<std::size_t>(1, std::min(threads_.size() / 2, cores)));
    note("note: {} threads cannot be started ({}): {}", threads, problem.what(),
         threads_.size() == 1 ? "1 computes all points"
                              : fmt::format("{} compute all points", threads_.size()));
  }
}

void PointThreads::keep(std::size_t count) {
  {
    const std::lock_guard lock(mutex_);
    kept_ = count;
  }
  more_.notify_all();
  for (; threads_.size() > count; threads_.pop_back()) threads_.back().join();
}

PointThreads::~PointThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PointThreads::work(std::size_t number) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto leaves = [&] { return ending_ || number >= kept_; };
    more_.wait(lock, [&] { return leaves() || !waiting_.empty(); });
    if (leaves()) return;
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
