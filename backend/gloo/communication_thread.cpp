#include "backend/gloo/communication_thread.hpp"

#include "backend/gloo/priority.hpp"

namespace ddpsim {

CommunicationThread::~CommunicationThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  submitted_.notify_one();
  thread_.join();
}

std::uint64_t CommunicationThread::submit(std::function<void()> job) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
    ticket = ++submitted_count_;
  }
  submitted_.notify_one();
  return ticket;
}

void CommunicationThread::wait(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return ended_count_ >= ticket || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void CommunicationThread::abandon() {
  std::unique_lock lock(mutex_);
  queue_.clear();
  ended_.wait(lock, [&] { return !running_; });
}

void CommunicationThread::work() {
  take_role(Role::communication);
  std::unique_lock lock(mutex_);
  while (true) {
    submitted_.wait(lock, [&] { return stop_ || (!queue_.empty() && !failure_); });
    if (stop_) return;
    const std::function<void()> job = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      job();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    running_ = false;
    ++ended_count_;
    if (failure) failure_ = failure;
    ended_.notify_all();
  }
}

}  // namespace ddpsim
