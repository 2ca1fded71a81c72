#include "backend/job/rank_processes.hpp"

#include <algorithm>
#include <cerrno>

#include <signal.h>
#include <sys/wait.h>

namespace ddpsim {

RankProcesses::~RankProcesses() {
  send(SIGKILL);
  for (const Process& process : running_)
    while (waitpid(process.id, nullptr, 0) < 0 && errno == EINTR) {
    }
}

std::vector<int> RankProcesses::ranks() const {
  std::vector<int> ranks;
  for (const Process& process : running_) ranks.push_back(process.rank);
  return ranks;
}

void RankProcesses::send(int signal) const {
  for (const Process& process : running_) kill(process.id, signal);
}

bool RankProcesses::all_stopped() const {
  return std::all_of(running_.begin(), running_.end(), [](const Process& process) {
    siginfo_t state{};
    return waitid(P_PID, static_cast<id_t>(process.id), &state, WSTOPPED | WNOHANG | WNOWAIT) ==
               0 &&
           state.si_pid == process.id && state.si_code == CLD_STOPPED;
  });
}

void RankProcesses::collect(const std::function<void(int rank, int status)>& ended) {
  std::erase_if(running_, [&](const Process& process) {
    int status = 0;
    const pid_t answer = waitpid(process.id, &status, WNOHANG);
    if (answer == process.id) ended(process.rank, status);
    return answer == process.id || (answer < 0 && errno != EINTR);
  });
}

}  // namespace ddpsim
