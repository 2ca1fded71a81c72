#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace ddpsim {

/// The communication streams of a CPU rank: queues, one for each communicator, and threads that run
/// what is in them. Of a queue, jobs begin in order, and so many as asked for run at a time.
///
/// One host thread submits and waits. After an exception nothing more is run, and every wait throws
/// it. The destructor lets the current work end and drops the rest.
class CommunicationThreads {
 public:
  CommunicationThreads() { arrange(1, 1); }
  ~CommunicationThreads();
  CommunicationThreads(const CommunicationThreads&) = delete;
  CommunicationThreads& operator=(const CommunicationThreads&) = delete;

  /// Sets how many queues there are and how many jobs each runs at a time. Call only while idle.
  void arrange(std::size_t queues, int at_once);

  /// Hands over a job, which begins once the jobs of the tickets in `after` have ended. Returns its
  /// ticket, for `wait`; tickets count up from 1.
  std::uint64_t submit(std::function<void()> job, std::size_t queue = 0,
                       std::vector<std::uint64_t> after = {});
  /// Blocks until the job of this ticket has ended.
  void wait(std::uint64_t ticket);
  /// Blocks until all jobs have ended.
  void wait_for_all();
  /// After a failure: drops what has not begun, and returns once nothing runs.
  void abandon();

 private:
  struct Job {
    std::uint64_t ticket = 0;
    std::function<void()> call;
    std::vector<std::uint64_t> after;
  };
  struct Queue {
    std::deque<Job> waiting;
    int running = 0;
  };

  void work();
  /// A queue whose first job may begin; null: there is none.
  Queue* next();
  bool ended(std::uint64_t ticket) const { return open_.count(ticket) == 0; }

  std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::vector<Queue> queues_;
  int at_once_ = 1;
  std::uint64_t submitted_ = 0;
  std::set<std::uint64_t> open_;  ///< tickets whose jobs have not ended
  bool stop_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;  ///< last: they use the others
};

}  // namespace ddpsim
