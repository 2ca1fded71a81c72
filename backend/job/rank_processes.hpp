#pragma once

#include <functional>
#include <vector>

#include <sys/types.h>

namespace ddpsim {

/// The processes of a job that have not been waited for; none outlives this.
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
  /// Has something stopped all that are left (SIGSTOP), and not continued them?
  bool all_stopped() const;
  /// Waits for those that have ended already: `ended(rank, status)`.
  void collect(const std::function<void(int rank, int status)>& ended);

 private:
  struct Process {
    int rank;
    pid_t id;
  };
  std::vector<Process> running_;
};

}  // namespace ddpsim
