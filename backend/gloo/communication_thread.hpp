#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace ddpsim {

/// The communication stream of a CPU rank: a thread that runs what it is given, in that order.
///
/// One host thread submits and waits. After an exception nothing more is run, and every wait throws
/// it. The destructor lets the current work end and drops the rest.
class CommunicationThread {
 public:
  CommunicationThread() : thread_([this] { work(); }) {}
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  /// The ticket to wait with; tickets count up from 1.
  std::uint64_t submit(std::function<void()> job);
  /// Blocks until the job of this ticket, and so every earlier one, has ended.
  void wait(std::uint64_t ticket);
  /// After a failure: drops what has not begun, and returns once nothing runs.
  void abandon();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable submitted_, ended_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t submitted_count_ = 0, ended_count_ = 0;
  bool stop_ = false, running_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace ddpsim
