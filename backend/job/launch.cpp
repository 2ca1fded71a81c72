// A job's ranks as processes, and how they end.
//
// The parent forks the ranks and then only waits: for one of them to end (SIGCHLD), or for a
// signal that asks the job to end. These signals are blocked before the first fork and taken one at
// a time, so no handler runs beside the code below and no wake-up is lost.
//
//   running      none has failed: wait, however long
//   ending       one has failed, or a signal came: the others have the timeout
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

#include "backend/job/launch.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <future>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

using Clock = std::chrono::steady_clock;
using RankFunction = std::function<int(int rank)>;

constexpr std::chrono::seconds grace{1};  // between SIGTERM and SIGKILL
constexpr int failure_code = 1, invalid_code = 2;

/// A line on stderr, in one write: those of several ranks do not mix.
void say(std::string line) {
  for (char& letter : line)
    if ((letter >= 0 && letter < ' ') || letter == 0x7f) letter = ' ';
  line = "ddpsim: " + line + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

std::string signal_name(int number) {
  return fmt::format("signal {} ({})", number, strsignal(number));
}

void expect_ranks(int ranks) {
  if (ranks < 1)
    throw std::invalid_argument(fmt::format("expected at least 1 rank, got {}", ranks));
}

/// The code of the rank that failed first; 0: none yet.
using FirstFailure = std::atomic<int>;
static_assert(FirstFailure::is_always_lock_free, "a lock would not be shared between processes");

void note(FirstFailure& first, int code) {
  int none = 0;
  if (code != 0) first.compare_exchange_strong(none, code);
}

/// The rank has failed; returns `code`.
int fail(int rank, FirstFailure& first, int code, const char* what) {
  note(first, code);  // before the line, which may take its time to be written
  say(fmt::format("rank {}: {}", rank, what));
  return code;
}

/// What `body` returns as that rank, or what its exception amounts to.
int code_of(int rank, FirstFailure& first, const RankFunction& body) noexcept {
  try {
    const int returned = body(rank);
    const int code = returned >= 0 && returned <= 255 ? returned : failure_code;
    note(first, code);
    return code;
  } catch (const std::invalid_argument& problem) {
    return fail(rank, first, invalid_code, problem.what());
  } catch (const std::exception& problem) {
    return fail(rank, first, failure_code, problem.what());
  } catch (...) {
    return fail(rank, first, failure_code, "an exception of unknown type");
  }
}

struct Unmap {
  void operator()(FirstFailure* shared) const { munmap(shared, sizeof *shared); }
};

/// One that processes forked from now on share.
std::unique_ptr<FirstFailure, Unmap> shared_first_failure() {
  void* memory = mmap(nullptr, sizeof(FirstFailure), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw DeviceError(fmt::format("no memory for the ranks to share: {}", std::strerror(errno)));
  return std::unique_ptr<FirstFailure, Unmap>(new (memory) FirstFailure(0));
}

/// What was printed and not yet written; false if it cannot be.
bool flush_output() {
  std::cout.flush();
  std::clog.flush();
  return std::fflush(nullptr) == 0 && !std::cout.bad();
}

/// The signals that concern a job, kept from their handlers while this exists and taken by next().
class JobSignals {
 public:
  JobSignals() {
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
  ~JobSignals() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const timespec now{};
    while (sigtimedwait(&child, nullptr, &now) > 0) {  // the ranks' are no business of the caller
    }
    sigaction(SIGCHLD, &child_action_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;

  /// The next one, the lowest number first; none if `until` comes before it.
  std::optional<siginfo_t> next(const std::optional<Clock::time_point>& until) const {
    for (;;) {
      siginfo_t signal{};
      if (wait(until, signal) > 0) return signal;
      if (errno == EAGAIN) return std::nullopt;  // else EINTR: another signal had a handler to run
    }
  }

  /// In a rank: handlers to default and the caller's mask, as exec would have it.
  void restore_in_rank() const {
    for (int number = 1; number <= SIGRTMAX; ++number) {
      struct sigaction plain = {};
      plain.sa_handler = SIG_DFL;
      if (!ignored(number)) sigaction(number, &plain, nullptr);
    }
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

 private:
  static bool ignored(int number) {
    struct sigaction action = {};
    return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  }

  int wait(const std::optional<Clock::time_point>& until, siginfo_t& signal) const {
    if (!until) return sigwaitinfo(&taken_, &signal);
    const auto left = std::max(*until - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec time{.tv_sec = seconds.count(),
                        .tv_nsec = std::chrono::nanoseconds(left - seconds).count()};
    return sigtimedwait(&taken_, &signal, &time);
  }

  sigset_t taken_{}, mask_before_{};
  struct sigaction child_action_before_ = {};
};

/// The processes of a job that have not been waited for; none outlives this.
class RankProcesses {
 public:
  explicit RankProcesses(int ranks) { running_.reserve(static_cast<std::size_t>(ranks)); }
  ~RankProcesses() {
    send(SIGKILL);
    for (const Process& process : running_)
      while (waitpid(process.id, nullptr, 0) < 0 && errno == EINTR) {
      }
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void add(int rank, pid_t id) { running_.push_back({rank, id}); }
  bool any() const { return !running_.empty(); }
  std::vector<int> ranks() const {
    std::vector<int> ranks;
    for (const Process& process : running_) ranks.push_back(process.rank);
    return ranks;
  }
  void send(int number) const {
    for (const Process& process : running_) kill(process.id, number);
  }
  /// Waits for those that have ended already: `ended(rank, status)`.
  template <typename Ended>
  void collect(const Ended& ended) {
    std::erase_if(running_, [&](const Process& process) {
      int status = 0;
      const pid_t answer = waitpid(process.id, &status, WNOHANG);
      if (answer == process.id) ended(process.rank, status);
      return answer == process.id || (answer < 0 && errno != EINTR);
    });
  }

 private:
  struct Process {
    int rank;
    pid_t id;
  };
  std::vector<Process> running_;
};

/// From the last fork to the end of the last rank; see the top of this file.
class Watch {
 public:
  Watch(RankProcesses& processes, FirstFailure& first, std::chrono::milliseconds timeout)
      : processes_(processes),
        first_(first),
        timeout_(std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds{0},
                                                       std::chrono::hours{24 * 365})) {}

  void until_all_ended(const JobSignals& signals) {
    while (processes_.any()) {
      if (const auto signal = signals.next(deadline_); !signal)
        escalate();
      else if (signal->si_signo == SIGCHLD)
        processes_.collect([this](int rank, int status) { ended(rank, status); });
      else
        asked_to_end(*signal);
    }
  }

 private:
  enum class Phase { running, ending, terminating, killed };

  void ended(int rank, int status) {
    if (WIFSIGNALED(status) && !expected(WTERMSIG(status)))
      say(fmt::format("rank {} was killed by {}", rank, signal_name(WTERMSIG(status))));
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : failure_code;
    note(first_, code);
    if (code != 0) begin_ending();
  }

  void asked_to_end(const siginfo_t& signal) {
    const int number = signal.si_signo;
    if (asked_ == 0) say("interrupted by " + signal_name(number));
    if (asked_ == SIGINT && number == SIGINT) return kill_all();
    if (asked_ != SIGINT) asked_ = number;
    const bool sent_to_us_alone = signal.si_code <= 0;  // by a process; the kernel's are positive
    if (sent_to_us_alone) processes_.send(number);
    begin_ending();
  }

  void begin_ending() {
    if (phase_ != Phase::running) return;
    phase_ = Phase::ending;
    deadline_ = Clock::now() + timeout_;
  }

  void escalate() {
    if (phase_ != Phase::ending) return kill_all();
    for (const int rank : processes_.ranks())
      say(fmt::format("rank {} did not end within {:g} s and is killed", rank,
                      std::chrono::duration<double>(timeout_).count()));
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

  /// What a rank dies of because we passed it on or sent it needs no line of its own.
  bool expected(int number) const {
    return number == asked_ || (phase_ >= Phase::terminating && number == SIGTERM) ||
           (phase_ == Phase::killed && number == SIGKILL);
  }

  RankProcesses& processes_;
  FirstFailure& first_;
  std::chrono::milliseconds timeout_;
  Phase phase_ = Phase::running;
  std::optional<Clock::time_point> deadline_;
  int asked_ = 0;  // the signal that asked us to end; SIGINT, once it came
};

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
  int code = code_of(rank, first, [&](int self) {
    empty_standard_input();
    return body(self);
  });
  if (!flush_output() && code == 0)
    code = fail(rank, first, failure_code, "its output could not be written");
  _exit(code);
}

}  // namespace

int run_processes(int ranks, std::chrono::milliseconds timeout, const RankFunction& body) {
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
      throw DeviceError(
          fmt::format("rank {} of {} could not be started: {}", rank, ranks, std::strerror(errno)));
    processes.add(rank, id);
  }
  Watch(processes, *first, timeout).until_all_ended(signals);
  return *first;
}

int run_threads(int ranks, const RankFunction& body) {
  expect_ranks(ranks);
  FirstFailure first{0};
  std::promise<bool> complete;
  const std::shared_future<bool> all_there = complete.get_future().share();
  std::vector<std::jthread> threads;
  try {
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank, all_there] {  // a copy: each thread waits on its own
        if (all_there.get()) code_of(rank, first, body);
      });
  } catch (const std::exception& problem) {
    complete.set_value(false);
    throw DeviceError(fmt::format("thread {} of {} could not be started: {}", threads.size(), ranks,
                                  problem.what()));
  }
  complete.set_value(true);
  threads.clear();  // joins them
  return first;
}

}  // namespace ddpsim
