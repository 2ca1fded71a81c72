#include "backend/gloo/communication_threads.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "backend/cpu/priority.hpp"
#include "backend/device_error.hpp"

namespace ddpsim {

CommunicationThreads::~CommunicationThreads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CommunicationThreads::arrange(std::size_t queues, int at_once) {
  const std::lock_guard lock(mutex_);
  if (queues > queues_.size()) queues_.resize(queues);
  at_once_ = at_once;
  const std::size_t threads = queues * static_cast<std::size_t>(at_once);
  try {
    while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& problem) {
    throw DeviceError(fmt::format("thread {} of {} for collectives could not be started: {}",
                                  threads_.size(), threads, problem.what()));
  }
}

std::uint64_t CommunicationThreads::submit(std::function<void()> job, std::size_t queue,
                                           std::vector<std::uint64_t> after) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++submitted_;
    queues_.at(queue).waiting.push_back({ticket, std::move(job), std::move(after)});
    open_.insert(ticket);
  }
  changed_.notify_one();
  return ticket;
}

void CommunicationThreads::wait(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return ended(ticket) || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void CommunicationThreads::wait_for_all() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return open_.empty() || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void CommunicationThreads::abandon() {
  std::unique_lock lock(mutex_);
  for (Queue& queue : queues_) {
    for (const Job& job : queue.waiting) open_.erase(job.ticket);
    queue.waiting.clear();
  }
  ended_.wait(lock, [&] { return open_.empty(); });
}

CommunicationThreads::Queue* CommunicationThreads::next() {
  if (failure_) return nullptr;
  for (Queue& queue : queues_) {
    if (queue.waiting.empty() || queue.running >= at_once_) continue;
    const auto& after = queue.waiting.front().after;
    if (std::all_of(after.begin(), after.end(), [this](auto each) { return ended(each); }))
      return &queue;
  }
  return nullptr;
}

void CommunicationThreads::work() {
  take_role(Role::communication);
  std::unique_lock lock(mutex_);
  while (true) {
    Queue* queue = nullptr;
    changed_.wait(lock, [&] { return stop_ || (queue = next()) != nullptr; });
    if (stop_) return;
    const Job job = std::move(queue->waiting.front());
    const auto index = queue - queues_.data();
    queue->waiting.pop_front();
    ++queue->running;
    lock.unlock();
    std::exception_ptr failure;
    try {
      job.call();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --queues_[static_cast<std::size_t>(index)].running;
    open_.erase(job.ticket);
    if (failure && !failure_) failure_ = failure;  // the others fail for it
    ended_.notify_all();
    if (threads_.size() > 1) changed_.notify_all();  // what waits for this one, or for its place
  }
}

}  // namespace ddpsim
