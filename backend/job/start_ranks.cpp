// A job's ranks as processes, and how they end.
//
// The parent forks the ranks and then only waits: for one of them to end (SIGCHLD), or for a
// signal that asks the job to end. These signals are blocked before the first fork and taken one at
// a time, so no handler runs beside the code below and no wake-up is lost.
//
//   running      none has failed: wait, however long
//   ending       one has failed, or a signal came: the others have the timeout, unless all that are
//                left are stopped
//   terminating  SIGTERM was sent, with SIGCONT, for a stopped process takes nothing else
//   killed       a second later, or at the second SIGINT: SIGKILL
//
// Who gets a signal. The ranks stay in the parent's process group, so a terminal's Ctrl-C and
// Ctrl-Z reach them as they reach any job of a shell. The kernel marks such signals as its own;
// others were sent to the parent alone, and are passed on.
//
// Who failed first. SIGCHLD tells that ranks have ended, not in which order, and when one fails its
// peers give up soon after. So a failing rank leaves its code in memory that all share, if it is
// the first to do so. Only a killed rank cannot; for that one the parent does, when it sees it.

#include "backend/job/start_ranks.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/job/job_signals.hpp"
#include "backend/job/rank_failure.hpp"
#include "backend/job/rank_processes.hpp"
#include "backend/thread_limits.hpp"

namespace ddpsim {
namespace {

using Clock = std::chrono::steady_clock;
using RankFunction = std::function<int(int rank)>;

constexpr std::chrono::seconds grace{1};  // between SIGTERM and SIGKILL

std::string signal_name(int number) {
  return fmt::format("signal {} ({})", number, strsignal(number));
}

void expect_ranks(int ranks) {
  if (ranks < 1)
    throw std::invalid_argument(fmt::format("expected at least 1 rank, got {}", ranks));
}

std::chrono::milliseconds at_most_a_year(std::chrono::milliseconds time) {
  return std::clamp<std::chrono::milliseconds>(time, std::chrono::milliseconds{0},
                                               std::chrono::hours{24 * 365});
}

/// "rank 3", "ranks 0, 1 and 2", "ranks 0, 1, 2, 3 and 996 more".
std::string rank_list(const std::vector<int>& ranks) {
  constexpr std::size_t most = 4;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const std::size_t shown = ranks.size() > most ? most : ranks.size() - 1;
  std::string text = "ranks";
  for (std::size_t k = 0; k < shown; ++k) text += fmt::format("{} {}", k == 0 ? "" : ",", ranks[k]);
  const std::size_t more = ranks.size() - shown;
  return more == 1 ? fmt::format("{} and {}", text, ranks.back())
                   : fmt::format("{} and {} more", text, more);
}

class JobWatch {
 public:
  JobWatch(RankProcesses& processes, FirstFailure& first, std::chrono::milliseconds timeout,
           std::chrono::milliseconds after_failure)
      : processes_(processes),
        first_(first),
        timeout_(at_most_a_year(timeout)),
        after_failure_(at_most_a_year(after_failure)) {}

  void until_all_ended(const JobSignals& signals) {
    while (processes_.any()) {
      if (const auto signal = signals.next(deadline_); !signal)
        escalate();
      else if (signal->si_signo == SIGCHLD)
        collect();
      else
        asked_to_end(*signal);
    }
  }

 private:
  enum class Phase { running, ending, terminating, killed };

  void collect() {
    processes_.collect([this](int rank, int status) { ended(rank, status); });
    if (phase_ == Phase::ending && processes_.all_stopped()) deadline_ = Clock::now();
  }

  void ended(int rank, int status) {
    if (WIFSIGNALED(status) && !expected(WTERMSIG(status)))
      print_line(fmt::format("rank {} was killed by {}", rank, signal_name(WTERMSIG(status))));
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : failure_code;
    note_code(first_, code);
    if (code != 0) begin_ending(after_failure_);
  }

  void asked_to_end(const siginfo_t& signal) {
    const int number = signal.si_signo;
    if (asked_ == 0) print_line("interrupted by " + signal_name(number));
    if (asked_ == SIGINT && number == SIGINT) return kill_all();
    if (asked_ != SIGINT) asked_ = number;
    const bool sent_to_us_alone = signal.si_code <= 0;  // by a process; the kernel's are positive
    if (sent_to_us_alone) processes_.send(number);
    begin_ending(timeout_);
  }

  void begin_ending(std::chrono::milliseconds time) {
    if (phase_ != Phase::running) return;
    phase_ = Phase::ending;
    had_ = time;
    deadline_ = Clock::now() + time;
  }

  void escalate() {
    if (phase_ != Phase::ending) return kill_all();
    const std::vector<int> ranks = processes_.ranks();
    const char* are = ranks.size() == 1 ? "is" : "are";
    if (processes_.all_stopped())
      print_line(fmt::format("{} {} stopped, and {} killed", rank_list(ranks), are, are));
    else
      print_line(fmt::format("{} did not end within {:g} s and {} killed", rank_list(ranks),
                             std::chrono::duration<double>(had_).count(), are));
    processes_.send(SIGTERM);
    processes_.send(SIGCONT);
    phase_ = Phase::terminating;
    deadline_ = Clock::now() + grace;
  }

  void kill_all() {
    processes_.send(SIGKILL);
    phase_ = Phase::killed;
    deadline_.reset();
  }

  /// Was the signal passed on or sent to the rank by this process? The end of such a rank needs no
  /// line of its own.
  bool expected(int number) const {
    return number == asked_ || (phase_ >= Phase::terminating && number == SIGTERM) ||
           (phase_ == Phase::killed && number == SIGKILL);
  }

  RankProcesses& processes_;
  FirstFailure& first_;
  std::chrono::milliseconds timeout_, after_failure_;
  std::chrono::milliseconds had_{};  // the one of these that has begun
  Phase phase_ = Phase::running;
  std::optional<Clock::time_point> deadline_;
  int asked_ = 0;  // the signal that asked us to end; SIGINT, once it came
};

/// Writes what was printed and is still in buffers; false if it cannot be written.
bool flush_output() {
  std::cout.flush();
  std::clog.flush();
  return std::fflush(nullptr) == 0 && !std::cout.bad();
}

void empty_standard_input() {
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
    throw DeviceError(fmt::format("/dev/null: {}", std::strerror(errno)));
  if (nothing != STDIN_FILENO) close(nothing);
}

/// The whole life of a forked rank. It must not return: the stack above is the parent's.
[[noreturn]] void live_as(int rank, pid_t parent, const JobSignals& signals, FirstFailure& first,
                          const RankFunction& body) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(failure_code);  // it died before the kernel knew
  signals.restore_in_rank();
  int code = code_of_rank(rank, first, [&](int self) {
    empty_standard_input();
    return body(self);
  });
  if (!flush_output() && code == 0)
    code = report_failure(rank, first, failure_code, "its output could not be written");
  _exit(code);
}

}  // namespace

int run_processes(int ranks, std::chrono::milliseconds timeout, const RankFunction& body,
                  std::optional<std::chrono::milliseconds> after_failure) {
  expect_ranks(ranks);
  const auto first = shared_first_failure();
  flush_output();  // or every rank would write it again
  const pid_t parent = getpid();
  const JobSignals signals;
  RankProcesses processes(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t id = fork();
    if (id == 0) live_as(rank, parent, signals, *first, body);
    if (id < 0)
      throw DeviceError(fmt::format("rank {} of {} could not be started: {}: {}", rank, ranks,
                                    std::strerror(errno), what_limits_threads));
    processes.add(rank, id);
  }
  JobWatch(processes, *first, timeout, after_failure.value_or(timeout)).until_all_ended(signals);
  say_how_many_more(*first);
  return first->code;
}

int run_threads(int ranks, const RankFunction& body) {
  expect_ranks(ranks);
  FirstFailure first;
  std::promise<bool> complete;
  const std::shared_future<bool> all_there = complete.get_future().share();
  std::vector<std::jthread> threads;
  try {
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank, all_there] {  // a copy: each thread waits on its own
        if (all_there.get()) code_of_rank(rank, first, body);
      });
  } catch (const std::exception& problem) {
    complete.set_value(false);
    throw DeviceError(fmt::format("thread {} of {} could not be started: {}: {}", threads.size(),
                                  ranks, problem.what(), what_limits_threads));
  }
  complete.set_value(true);
  threads.clear();  // joins them
  say_how_many_more(first);
  return first.code;
}

}  // namespace ddpsim
