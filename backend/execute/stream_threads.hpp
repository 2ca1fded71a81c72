#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace ddpsim {

/// The streams of a rank beside its host thread: queues, and threads that run what is in them.
///
/// Jobs of a queue begin in order, so many at a time as its lanes. Jobs that stand in a line too
/// (collectives of one communicator) begin in the order of the line, whichever queues they are in,
/// and so many at a time as the line says.
///
/// One host thread submits and waits. After an exception nothing more is run, and every wait throws
/// it. The destructor lets the current work end and drops the rest.
class StreamThreads {
 public:
  /// `begin`: called first of all on each thread; may be empty.
  explicit StreamThreads(std::function<void()> begin = {});
  ~StreamThreads();
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  /// Sets how many jobs each queue, and each line, runs at a time. Call only while idle.
  void arrange(const std::vector<int>& lanes, const std::vector<int>& at_once = {});
  /// So many queues of so many lanes each.
  void arrange(std::size_t queues, int lanes) { arrange(std::vector<int>(queues, lanes)); }

  /// Hands over a job, which begins once the jobs of the tickets in `after` have ended. Returns its
  /// ticket, for `wait`; tickets count up from 1.
  std::uint64_t submit(std::function<void()> job, std::size_t queue = 0,
                       std::vector<std::uint64_t> after = {}, std::optional<std::size_t> line = {});
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
    std::optional<std::size_t> line;
  };
  struct Queue {
    std::deque<Job> waiting;
    int running = 0, lanes = 1;
  };
  struct Line {
    std::deque<std::uint64_t> waiting;  ///< tickets
    int running = 0, at_once = 1;
  };

  void work();
  /// A queue whose first job may begin; null: there is none.
  Queue* next();
  bool may_begin(const Job& job) const;
  bool ended(std::uint64_t ticket) const { return open_.count(ticket) == 0; }

  std::function<void()> begin_;
  std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::vector<Queue> queues_;
  std::vector<Line> lines_;
  std::uint64_t submitted_ = 0;
  std::set<std::uint64_t> open_;  ///< tickets whose jobs have not ended
  bool stop_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;  ///< last: they use the others
};

}  // namespace ddpsim
