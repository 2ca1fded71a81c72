#include "backend/execute/stream_threads.hpp"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "backend/device_error.hpp"

namespace ddpsim {

StreamThreads::StreamThreads(std::function<void()> begin) : begin_(std::move(begin)) {
  arrange(1, 1);
}

StreamThreads::~StreamThreads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void StreamThreads::arrange(const std::vector<int>& lanes, const std::vector<int>& at_once) {
  const std::lock_guard lock(mutex_);
  queues_.resize(std::max(queues_.size(), lanes.size()));
  for (std::size_t q = 0; q < lanes.size(); ++q) queues_[q].lanes = lanes[q];
  lines_.resize(std::max(lines_.size(), at_once.size()));
  for (std::size_t l = 0; l < at_once.size(); ++l) lines_[l].at_once = at_once[l];
  const auto threads = static_cast<std::size_t>(std::accumulate(lanes.begin(), lanes.end(), 0));
  try {
    while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& problem) {
    throw DeviceError(fmt::format("thread {} of {} for collectives could not be started: {}",
                                  threads_.size(), threads, problem.what()));
  }
}

std::uint64_t StreamThreads::submit(std::function<void()> job, std::size_t queue,
                                    std::vector<std::uint64_t> after,
                                    std::optional<std::size_t> line) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++submitted_;
    if (line) lines_.at(*line).waiting.push_back(ticket);
    queues_.at(queue).waiting.push_back({ticket, std::move(job), std::move(after), line});
    open_.insert(ticket);
  }
  changed_.notify_one();
  return ticket;
}

void StreamThreads::wait(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return ended(ticket) || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void StreamThreads::wait_for_all() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return open_.empty() || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void StreamThreads::abandon() {
  std::unique_lock lock(mutex_);
  for (Queue& queue : queues_) {
    for (const Job& job : queue.waiting) open_.erase(job.ticket);
    queue.waiting.clear();
  }
  for (Line& line : lines_) line.waiting.clear();
  ended_.wait(lock, [&] { return open_.empty(); });
}

bool StreamThreads::may_begin(const Job& job) const {
  if (job.line) {
    const Line& line = lines_[*job.line];
    if (line.waiting.front() != job.ticket || line.running >= line.at_once) return false;
  }
  return std::ranges::all_of(job.after, [this](std::uint64_t each) { return ended(each); });
}

StreamThreads::Queue* StreamThreads::next() {
  if (failure_) return nullptr;
  for (Queue& queue : queues_)
    if (!queue.waiting.empty() && queue.running < queue.lanes && may_begin(queue.waiting.front()))
      return &queue;
  return nullptr;
}

void StreamThreads::work() {
  if (begin_) begin_();
  std::unique_lock lock(mutex_);
  while (true) {
    Queue* queue = nullptr;
    changed_.wait(lock, [&] { return stop_ || (queue = next()) != nullptr; });
    if (stop_) return;
    const Job job = std::move(queue->waiting.front());
    const auto index = queue - queues_.data();
    queue->waiting.pop_front();
    ++queue->running;
    if (job.line) {
      lines_[*job.line].waiting.pop_front();
      ++lines_[*job.line].running;
    }
    if (job.line && threads_.size() > 1) changed_.notify_all();  // the next of the line is first
    lock.unlock();
    std::exception_ptr failure;
    try {
      job.call();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --queues_[static_cast<std::size_t>(index)].running;
    if (job.line) --lines_[*job.line].running;
    open_.erase(job.ticket);
    if (failure && !failure_) failure_ = failure;  // the others fail for it
    ended_.notify_all();
    if (threads_.size() > 1) changed_.notify_all();  // what waits for this one, or for its place
  }
}

}  // namespace ddpsim
