#include "backend/job/job_signals.hpp"

#include <algorithm>
#include <cerrno>

namespace ddpsim {
namespace {

using Clock = std::chrono::steady_clock;

bool ignored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// The number of the signal that came; not positive: none, and errno says why.
int wait(const sigset_t& taken, const std::optional<Clock::time_point>& until, siginfo_t& signal) {
  if (!until) return sigwaitinfo(&taken, &signal);
  const auto left = std::max(*until - Clock::now(), Clock::duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec time{.tv_sec = seconds.count(),
                      .tv_nsec = std::chrono::nanoseconds(left - seconds).count()};
  return sigtimedwait(&taken, &signal, &time);
}

}  // namespace

JobSignals::JobSignals() {
  sigemptyset(&taken_);
  sigaddset(&taken_, SIGCHLD);
  for (const int number : {SIGHUP, SIGINT, SIGTERM})
    if (!ignored(number)) sigaddset(&taken_, number);
  pthread_sigmask(SIG_BLOCK, &taken_, &mask_before_);
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;  // where SIGCHLD is ignored, children leave no status
  plain.sa_flags = SA_NOCLDSTOP;
  sigaction(SIGCHLD, &plain, &child_action_before_);
}

JobSignals::~JobSignals() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const timespec now{};
  while (sigtimedwait(&child, nullptr, &now) > 0) {  // the ranks' are no business of the caller
  }
  sigaction(SIGCHLD, &child_action_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<siginfo_t> JobSignals::next(const std::optional<Clock::time_point>& until) const {
  for (;;) {
    siginfo_t signal{};
    if (wait(taken_, until, signal) > 0) return signal;
    if (errno == EAGAIN) return std::nullopt;  // else EINTR: another signal had a handler to run
  }
}

void JobSignals::restore_in_rank() const {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;
    if (!ignored(number)) sigaction(number, &plain, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace ddpsim
