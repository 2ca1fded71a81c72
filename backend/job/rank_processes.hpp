#pragma once

#include <functional>
#include <vector>

#include <sys/types.h>

namespace ddpsim {

/// The processes of a job that have not been waited for. The destructor ends those that are left.
class RankProcesses {
 public:
  explicit RankProcesses(int ranks) { running_.reserve(static_cast<std::size_t>(ranks)); }
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void add(int rank, pid_t id) { running_.push_back({rank, id}); }
  bool any() const { return !running_.empty(); }
  std::vector<int> ranks() const;
  void send(int signal) const;
  /// Are all processes that are left stopped (SIGSTOP)?
  bool all_stopped() const;
  /// Reaps the processes that have ended already and calls ended(rank, status) for each; does not
  /// block.
  void collect(const std::function<void(int rank, int status)>& ended);

 private:
  struct Process {
    int rank;
    pid_t id;
  };
  std::vector<Process> running_;
};

}  // namespace ddpsim
