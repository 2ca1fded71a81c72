// Jobs of real processes that meet real signals. Each runs in a process of its own, the job's
// parent, which the test can signal, stop and kill. This program is the "subreaper" meanwhile: what
// a parent leaves behind becomes our child, so that having no child means that nothing was left.
//
// Parent, ranks and test tell each other how far they are by files. Waits end when what they wait
// for happens; the limit is there to fail at, and to end, should it not.

#include "backend/job/start_ranks.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <latch>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/job/rank_failure.hpp"
#include "tests/not_run.hpp"
#include "tests/scenarios/reader/scratch.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

constexpr auto limit = 60s;                       // for anything to happen, on a loaded machine
constexpr std::chrono::milliseconds soon{200};    // timeouts of jobs: one to be reached
constexpr std::chrono::milliseconds never{600s};  // and one not to be

template <typename Condition>
bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// What parent, ranks and test tell each other. A name appears with all of its content.
class Board {
 public:
  void post(const std::string& name, long content = 0) const {
    const std::string unfinished = name + "." + std::to_string(getpid());
    scratch_.write(unfinished, std::to_string(content));
    std::filesystem::rename(scratch_.path(unfinished), scratch_.path(name));
  }
  bool has(const std::string& name) const { return std::filesystem::exists(scratch_.path(name)); }
  bool await(const std::string& name) const {
    return eventually([&] { return has(name); });
  }
  long read(const std::string& name) const { return std::stol(content_of(scratch_.path(name))); }

 private:
  Scratch scratch_;
};

std::string numbered(const std::string& name, int rank) {
  return name + std::to_string(rank);
}

/// The state of a process: 'T' stopped, 'Z' ended and not waited for; ' ' if there is none.
char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? ' ' : text[name_end + 2];
}

bool have_no_child() {
  return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
}

/// Sleeps until a signal ends this process.
[[noreturn]] void hang() {
  for (;;) pause();
}

/// The process a job is run in: `run` is all it does. Its group, and its terminal if one is given,
/// are its own.
class Parent {
 public:
  explicit Parent(const std::function<int()>& run, int terminal = -1) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::cout.flush();
    std::fflush(nullptr);
    id_ = fork();
    if (id_ < 0) throw std::runtime_error("fork failed");
    if (id_ == 0) live(run, terminal);
    if (terminal < 0) setpgid(id_, id_);
  }
  ~Parent() {
    kill(-id_, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  pid_t id() const { return id_; }
  void send(int number) const { kill(id_, number); }
  /// Its exit code, or 128 + the signal that killed it; -1 if it does not end.
  int code() const { return code_of(id_); }
  std::string out() const { return content_of(scratch_.path("out")); }
  std::string err() const { return content_of(scratch_.path("err")); }

  static int code_of(pid_t process) {
    int status = 0;
    if (!eventually([&] { return waitpid(process, &status, WNOHANG) == process; })) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  [[noreturn]] void live(const std::function<int()>& run, int terminal) const noexcept {
    // Neither Catch2's handlers nor what this program was started with.
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGTERM, SIGCHLD, SIGPIPE})
      signal(number, SIG_DFL);
    if (terminal < 0) {
      setpgid(0, 0);
    } else {
      setsid();
      ioctl(terminal, TIOCSCTTY, 0);
    }
    const rlimit no_core_file{0, 0};
    setrlimit(RLIMIT_CORE, &no_core_file);
    const int mode = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open(scratch_.path("out").c_str(), mode, 0600), STDOUT_FILENO);
    dup2(open(scratch_.path("err").c_str(), mode, 0600), STDERR_FILENO);
    int code = 99;
    try {
      code = run();
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "the parent: %s\n", problem.what());
    }
    std::cout.flush();
    std::fflush(nullptr);
    _exit(have_no_child() ? code : 98);
  }

  Scratch scratch_;
  pid_t id_ = -1;
};

/// A job as the whole of its parent: its code is the parent's, or 98 if a child was left.
Parent job(int ranks, std::chrono::milliseconds timeout, const std::function<int(int)>& body) {
  return Parent([&] { return run_processes(ranks, timeout, body); });
}

volatile std::sig_atomic_t received = 0;

void count(int) {
  received = received + 1;
}

/// Ends by itself at its first signal of that number: 0 if no second one comes, else 7.
int end_at_one(int number, const Board& board, int rank) {
  signal(number, count);
  board.post(numbered("ready ", rank));
  if (!eventually([] { return received > 0; })) return 8;
  std::this_thread::sleep_for(300ms);
  return received == 1 ? 0 : 7;
}

}  // namespace

TEST_CASE("a job returns 0 when all its ranks have run at once and returned 0",
          "[backend][start_ranks]") {
  const Board board;
  const Parent parent = job(3, never, [&](int rank) {
    board.post(numbered("rank ", rank), getpid());
    const bool all = board.await("rank 0") && board.await("rank 1") && board.await("rank 2");
    return all && !board.has("rank 3") ? 0 : 9;
  });
  CHECK(parent.code() == 0);
  CHECK(parent.err().empty());
  CHECK(have_no_child());
  CHECK(board.read("rank 0") != board.read("rank 1"));
}

TEST_CASE("a job needs a rank", "[backend][start_ranks]") {
  const auto nothing = [](int) { return 0; };
  CHECK_THROWS_AS(run_processes(0, never, nothing), std::invalid_argument);
  CHECK_THROWS_AS(run_processes(-1, never, nothing), std::invalid_argument);
  CHECK_THROWS_AS(run_threads(0, nothing), std::invalid_argument);
}

TEST_CASE("a job returns the code of the rank that failed first", "[backend][start_ranks]") {
  const Board board;
  const Parent parent = job(3, never, [&](int rank) {
    board.post(numbered("rank ", rank), getpid());
    if (rank == 1) return 3;
    const bool ended = eventually([&] {
      return board.has("rank 1") && (state_of(static_cast<pid_t>(board.read("rank 1"))) == 'Z' ||
                                     state_of(static_cast<pid_t>(board.read("rank 1"))) == ' ');
    });
    return ended ? 4 : 9;
  });
  CHECK(parent.code() == 3);
  CHECK(have_no_child());
}

TEST_CASE("which rank failed first does not depend on when the parent looks",
          "[backend][start_ranks]") {
  const Board board;
  const Parent parent = job(2, never, [&](int rank) {
    board.post(numbered("rank ", rank), getpid());
    board.await(numbered("fail ", rank));
    return rank == 0 ? 4 : 3;
  });
  REQUIRE(board.await("rank 0"));
  REQUIRE(board.await("rank 1"));
  parent.send(SIGSTOP);
  REQUIRE(eventually([&] { return state_of(parent.id()) == 'T'; }));
  for (const int rank : {1, 0}) {
    board.post(numbered("fail ", rank));
    const auto process = static_cast<pid_t>(board.read(numbered("rank ", rank)));
    REQUIRE(eventually([&] { return state_of(process) == 'Z'; }));
  }
  parent.send(SIGCONT);
  CHECK(parent.code() == 3);
}

TEST_CASE("a code that an exit status cannot hold is a failure", "[backend][start_ranks]") {
  const int code = GENERATE(256, -1, 512);
  CHECK(job(1, never, [&](int) { return code; }).code() == failure_code);
  CHECK(run_threads(1, [&](int) { return code; }) == failure_code);
}

TEST_CASE("a killed rank fails the job, and the parent says so", "[backend][start_ranks]") {
  const Parent parent = job(2, never, [](int rank) { return rank == 1 ? raise(SIGKILL) : 0; });
  CHECK(parent.code() == failure_code);
  CHECK_THAT(parent.err(), Equals("ddpsim: rank 1 was killed by signal 9 (Killed)\n"));
}

TEST_CASE("after a failure the other ranks may end by themselves", "[backend][start_ranks]") {
  const Board board;
  const Parent parent = job(2, never, [&](int rank) {
    if (rank == 0) return 5;
    std::this_thread::sleep_for(300ms);
    board.post("ended");
    return 0;
  });
  CHECK(parent.code() == 5);
  CHECK(board.has("ended"));
  CHECK(parent.err().empty());
}

TEST_CASE("ranks that outlast the timeout are killed", "[backend][start_ranks]") {
  const bool deaf = GENERATE(false, true);
  const Board board;
  const Parent parent = job(3, soon, [&](int rank) -> int {
    if (deaf) signal(SIGTERM, SIG_IGN);
    board.post(numbered("rank ", rank));
    if (rank != 1) hang();
    board.await("rank 0");
    board.await("rank 2");
    return 5;
  });
  CHECK(parent.code() == 5);
  CHECK_THAT(parent.err(),
             Equals("ddpsim: ranks 0 and 2 did not end within 0.2 s and are killed\n"));
  CHECK(have_no_child());
}

TEST_CASE("many ranks that fail or are killed take a few lines", "[backend][start_ranks]") {
  const Parent failing = job(12, never, [](int) -> int { throw std::runtime_error("no"); });
  CHECK(failing.code() == failure_code);
  const std::string said = failing.err();
  CAPTURE(said);
  CHECK(std::count(said.begin(), said.end(), '\n') == 9);  // eight of them, and how many more
  CHECK_THAT(said, Catch::EndsWith("ddpsim: 4 more ranks failed\n"));
  const Board board;
  const Parent hanging = job(12, soon, [&](int rank) -> int {
    board.post(numbered("rank ", rank));
    if (rank != 11) hang();
    for (int other = 0; other < 11; ++other) board.await(numbered("rank ", other));
    return 5;
  });
  CHECK(hanging.code() == 5);
  CHECK_THAT(
      hanging.err(),
      Equals("ddpsim: ranks 0, 1, 2, 3 and 7 more did not end within 0.2 s and are killed\n"));
}

TEST_CASE("a rank can clean up when it is told to end, also a stopped one",
          "[backend][start_ranks]") {
  const bool stopped = GENERATE(false, true);
  const Board board;
  const Parent parent = job(2, soon, [&](int rank) {
    if (rank == 0) {
      const bool ready =
          board.await("ready 1") && eventually([&] {
            return !stopped || state_of(static_cast<pid_t>(board.read("ready 1"))) == 'T';
          });
      return ready ? 5 : 9;
    }
    signal(SIGTERM, count);
    board.post("ready 1", getpid());
    if (stopped) raise(SIGSTOP);
    if (eventually([] { return received > 0; })) board.post("clean");
    return 0;
  });
  CHECK(parent.code() == 5);
  CHECK(board.has("clean"));
}

TEST_CASE("a stopped rank does not keep the job", "[backend][start_ranks]") {
  const bool deaf = GENERATE(false, true);
  const Board board;
  const Parent parent = job(2, soon, [&](int rank) {
    if (rank == 1) {
      if (deaf) signal(SIGTERM, SIG_IGN);
      board.post("stops", getpid());
      raise(SIGSTOP);
      if (deaf) hang();
      return 0;
    }
    const bool stopped = board.await("stops") && eventually([&] {
                           return state_of(static_cast<pid_t>(board.read("stops"))) == 'T';
                         });
    return stopped ? 5 : 9;
  });
  CHECK(parent.code() == 5);
  CHECK_THAT(parent.err(), Contains("ddpsim: rank 1 is stopped, and is killed"));
  CHECK(have_no_child());
}

TEST_CASE("no rank is hurried as long as none has failed", "[backend][start_ranks]") {
  const Parent parent = job(2, 0ms, [](int rank) {
    if (rank == 0) std::this_thread::sleep_for(500ms);
    return 0;
  });
  CHECK(parent.code() == 0);
  CHECK(parent.err().empty());
}

TEST_CASE("the longest timeout is no overflow", "[backend][start_ranks]") {
  const Parent parent = job(2, std::chrono::milliseconds::max(), [](int rank) {
    if (rank == 1) std::this_thread::sleep_for(300ms);
    return rank == 0 ? 5 : 0;
  });
  CHECK(parent.code() == 5);
  CHECK(parent.err().empty());
}

TEST_CASE("an exception in a rank is one line and a code", "[backend][start_ranks]") {
  struct Expected {
    std::function<void()> fail;
    std::string line;
    int code;
  };
  const auto expected = GENERATE(
      Expected{[] { throw DeviceError("the link is down"); }, "the link is down", failure_code},
      Expected{[] { throw std::runtime_error("two\nlines"); }, "two\\nlines", failure_code},
      Expected{[] { throw std::invalid_argument("no such type"); }, "no such type", 2},
      Expected{[] { throw std::out_of_range("beyond"); }, "beyond", failure_code},
      Expected{[] { throw 7; }, "an exception of unknown type", failure_code});
  const auto body = [&](int rank) {
    if (rank == 1) expected.fail();
    return 0;
  };
  const Parent processes = job(2, never, body);
  CHECK(processes.code() == expected.code);
  CHECK_THAT(processes.err(), Equals("ddpsim: rank 1: " + expected.line + "\n"));
  const Parent threads([&] { return run_threads(2, body); });
  CHECK(threads.code() == expected.code);
  CHECK_THAT(threads.err(), Equals("ddpsim: rank 1: " + expected.line + "\n"));
}

TEST_CASE("what is printed without a line's end arrives, and once", "[backend][start_ranks]") {
  const bool fails = GENERATE(false, true);
  const Parent parent([&] {
    std::printf("parent, ");
    std::cout << "before, ";
    const int code = run_processes(2, never, [&](int rank) {
      if (rank == 0) std::printf("rank, ");
      if (rank == 0) std::cout << "in C++, ";
      if (fails) throw DeviceError("failed");
      return 0;
    });
    std::printf("after");
    return code;
  });
  CHECK(parent.code() == (fails ? failure_code : 0));
  CHECK_THAT(parent.out(), Equals("parent, before, rank, in C++, after"));
}

TEST_CASE("a rank whose output cannot be written has failed", "[backend][start_ranks]") {
  const Parent parent([] {
    dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
    return run_processes(2, never, [](int rank) {
      if (rank == 1) std::printf("the result");
      return 0;
    });
  });
  CHECK(parent.code() == failure_code);
  CHECK_THAT(parent.err(), Equals("ddpsim: rank 1: its output could not be written\n"));
}

TEST_CASE("a rank destroys nothing of its parent's", "[backend][start_ranks]") {
  struct Witness {
    const Board& board;
    pid_t owner = getpid();
    ~Witness() {
      if (getpid() != owner) board.post("destroyed");
    }
  };
  static const Board* of_exit = nullptr;
  const Board board;
  const Parent parent([&] {
    const Witness witness{board};
    of_exit = &board;
    std::atexit([] { of_exit->post("exit handler ran"); });
    return run_processes(3, never, [](int rank) {
      if (rank == 1) throw DeviceError("failed");
      return rank;
    });
  });
  CHECK(parent.code() != 0);
  CHECK_FALSE(board.has("destroyed"));
  CHECK_FALSE(board.has("exit handler ran"));
}

TEST_CASE("a rank's standard input is empty", "[backend][start_ranks]") {
  const Scratch scratch;
  const std::string file = scratch.write("input", "not for ranks").string();
  const bool closed = GENERATE(false, true);
  const Parent parent([&] {
    close(STDIN_FILENO);
    if (!closed) open(file.c_str(), O_RDONLY);
    return run_processes(2, never, [](int) {
      char letter = 0;
      return read(STDIN_FILENO, &letter, 1) == 0 ? 0 : 5;
    });
  });
  CHECK(parent.code() == 0);
}

TEST_CASE("a signal to the parent ends the ranks", "[backend][start_ranks][signal]") {
  const int number = GENERATE(SIGHUP, SIGINT, SIGTERM);
  const Board board;
  const Parent parent = job(3, never, [&](int rank) -> int {
    board.post(numbered("rank ", rank));
    hang();
  });
  for (const int rank : {0, 1, 2}) REQUIRE(board.await(numbered("rank ", rank)));
  parent.send(number);
  CHECK(parent.code() == failure_code);
  CHECK_THAT(parent.err(), Equals("ddpsim: interrupted by signal " + std::to_string(number) + " (" +
                                  strsignal(number) + ")\n"));
  CHECK(have_no_child());
}

TEST_CASE("a rank gets a signal to its parent once and may end by itself",
          "[backend][start_ranks][signal]") {
  const int number = GENERATE(SIGHUP, SIGINT, SIGTERM);
  const Board board;
  const Parent parent = job(2, never, [&](int rank) { return end_at_one(number, board, rank); });
  for (const int rank : {0, 1}) REQUIRE(board.await(numbered("ready ", rank)));
  parent.send(number);
  CHECK(parent.code() == 0);
}

TEST_CASE("a rank gets a terminal's interrupt once", "[backend][start_ranks][signal]") {
  const int keyboard = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(keyboard >= 0);
  REQUIRE(grantpt(keyboard) == 0);
  REQUIRE(unlockpt(keyboard) == 0);
  const int terminal = open(ptsname(keyboard), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  {
    const Board board;
    const Parent parent(
        [&] {
          return run_processes(2, never, [&](int rank) { return end_at_one(SIGINT, board, rank); });
        },
        terminal);
    for (const int rank : {0, 1}) REQUIRE(board.await(numbered("ready ", rank)));
    REQUIRE(write(keyboard, "\x03", 1) == 1);  // Ctrl-C
    CHECK(parent.code() == 0);
    CHECK_THAT(parent.err(), Equals("ddpsim: interrupted by signal 2 (Interrupt)\n"));
  }
  close(terminal);
  close(keyboard);
}

TEST_CASE("ranks deaf to a signal are killed after the timeout", "[backend][start_ranks][signal]") {
  const Board board;
  const Parent parent = job(2, soon, [&](int rank) -> int {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
    board.post(numbered("rank ", rank));
    hang();
  });
  for (const int rank : {0, 1}) REQUIRE(board.await(numbered("rank ", rank)));
  parent.send(SIGTERM);
  CHECK(parent.code() == failure_code);
  CHECK(have_no_child());
}

TEST_CASE("a second interrupt kills at once", "[backend][start_ranks][signal]") {
  const Board board;
  const Parent parent = job(2, never, [&](int rank) -> int {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, count);
    board.post(numbered("rank ", rank));
    eventually([] { return received > 0; });
    board.post(numbered("interrupted ", rank));
    hang();
  });
  for (const int rank : {0, 1}) REQUIRE(board.await(numbered("rank ", rank)));
  parent.send(SIGINT);
  for (const int rank : {0, 1}) REQUIRE(board.await(numbered("interrupted ", rank)));
  CHECK(state_of(parent.id()) != 'Z');
  parent.send(SIGINT);
  CHECK(parent.code() == failure_code);
  CHECK_THAT(parent.err(), Equals("ddpsim: interrupted by signal 2 (Interrupt)\n"));
  CHECK(have_no_child());
}

TEST_CASE("ranks die with their parent, however it dies", "[backend][start_ranks][signal]") {
  const int number = GENERATE(SIGKILL, SIGQUIT, SIGABRT);
  const bool stopped = GENERATE(false, true);
  const Board board;
  const Parent parent = job(3, never, [&](int rank) -> int {
    for (const int deaf : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) signal(deaf, SIG_IGN);
    board.post(numbered("rank ", rank), getpid());
    if (stopped) raise(SIGSTOP);
    hang();
  });
  std::vector<pid_t> ranks;
  for (const int rank : {0, 1, 2}) {
    REQUIRE(board.await(numbered("rank ", rank)));
    ranks.push_back(static_cast<pid_t>(board.read(numbered("rank ", rank))));
    if (stopped) REQUIRE(eventually([&] { return state_of(ranks.back()) == 'T'; }));
  }
  parent.send(number);
  CHECK(parent.code() == 128 + number);
  for (const pid_t rank : ranks) CHECK(Parent::code_of(rank) == 128 + SIGKILL);
  CHECK(have_no_child());
}

TEST_CASE("a parent killed while it starts its ranks leaves none",
          "[backend][start_ranks][signal]") {
  for (int round = 0; round < 20; ++round) {
    const Parent parent = job(30, never, [](int) -> int { hang(); });
    std::this_thread::sleep_for(round * 200us);
    parent.send(SIGKILL);
    CHECK(eventually([] {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      return have_no_child();
    }));
  }
}

TEST_CASE("handlers and mask are as before on return", "[backend][start_ranks][signal]") {
  const bool fails = GENERATE(false, true);
  const Parent parent([&] {
    signal(SIGINT, count);
    signal(SIGCHLD, count);
    signal(SIGHUP, SIG_IGN);
    sigset_t blocked, after;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    const int code = run_processes(3, never, [&](int) { return fails ? 5 : 0; });
    if (code != (fails ? 5 : 0)) return 20;
    sigprocmask(SIG_SETMASK, nullptr, &after);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1})
      if (sigismember(&after, number) != (number == SIGUSR1 ? 1 : 0)) return 21;
    if (received != 0) return 22;  // the ranks' ends are none of the caller's business
    raise(SIGCHLD);
    raise(SIGINT);
    if (received != 2) return 23;
    return signal(SIGHUP, SIG_DFL) == SIG_IGN && signal(SIGTERM, SIG_DFL) == SIG_DFL ? 0 : 24;
  });
  CHECK(parent.code() == 0);
}

TEST_CASE("a rank starts with default handlers and the caller's mask",
          "[backend][start_ranks][signal]") {
  const Parent parent([] {
    for (const int number : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGSEGV}) signal(number, count);
    signal(SIGHUP, SIG_IGN);  // by nohup
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    return run_processes(1, never, [](int) {
      sigset_t mask;
      sigprocmask(SIG_SETMASK, nullptr, &mask);
      for (const int number : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGSEGV}) {
        if (signal(number, SIG_DFL) != SIG_DFL) return number;
        if (sigismember(&mask, number) != 0) return 100 + number;
      }
      if (sigismember(&mask, SIGUSR2) != 1) return 201;
      return signal(SIGHUP, SIG_DFL) == SIG_IGN ? 0 : 202;
    });
  });
  CHECK(parent.code() == 0);
}

TEST_CASE("under nohup a hang-up ends nothing", "[backend][start_ranks][signal]") {
  const Board board;
  const Parent parent([&] {
    signal(SIGHUP, SIG_IGN);
    return run_processes(1, never, [&](int) {
      board.post("ready");
      return board.await("go") ? 0 : 9;
    });
  });
  REQUIRE(board.await("ready"));
  kill(-parent.id(), SIGHUP);
  board.post("go");
  CHECK(parent.code() == 0);
  CHECK(parent.err().empty());
}

TEST_CASE("a caller that ignores its children still learns how the ranks ended",
          "[backend][start_ranks][signal]") {
  const Parent parent([] {
    signal(SIGCHLD, SIG_IGN);
    return run_processes(2, never, [](int rank) { return rank == 0 ? 6 : 0; });
  });
  CHECK(parent.code() == 6);
}

TEST_CASE("the caller's own children are left alone", "[backend][start_ranks]") {
  const Parent parent([] {
    const pid_t own = fork();
    if (own == 0) _exit(33);
    eventually([&] { return state_of(own) == 'Z'; });
    const int code = run_processes(2, never, [](int) { return 0; });
    return code == 0 && Parent::code_of(own) == 33 ? 0 : 5;
  });
  CHECK(parent.code() == 0);
}

namespace {

/// Leaves room for two more processes or threads. Root has no limit, so it becomes a user that runs
/// nothing else; for others the limit is one they have passed already. False: not possible here.
bool almost_no_more_processes() {
  const bool root = geteuid() == 0;
  const uid_t nobody_else = 50'000 + static_cast<uid_t>(getpid()) % 10'000;
  if (root && setuid(nobody_else) != 0) return false;
  const rlimit few{root ? 3u : 1u, root ? 3u : 1u};
  return setrlimit(RLIMIT_NPROC, &few) == 0;
}

constexpr int refused = 42, cannot_be_tried = 43;

}  // namespace

TEST_CASE("a job that cannot start all its ranks leaves none", "[backend][start_ranks]") {
  const bool as_threads = GENERATE(false, true);
  const Board board;
  const Parent parent([&] {
    if (!almost_no_more_processes()) return cannot_be_tried;
    signal(SIGCHLD, count);
    try {
      if (as_threads) return run_threads(8, [](int) -> int { std::_Exit(50); });
      return run_processes(8, never, [](int) -> int { hang(); });
    } catch (const DeviceError& problem) {
      std::fputs(problem.what(), stderr);
      return received == 0 ? refused : 44;  // the ranks' ends are none of the caller's business
    }
  });
  const int code = parent.code();
  if (code == cannot_be_tried) {
    not_run("the number of processes cannot be limited here");
    return;
  }
  CHECK(code == refused);
  CHECK_THAT(parent.err(),
             Catch::Matchers::Matches("(rank|thread) [0-9] of 8 could not be started: "
                                      "Resource temporarily unavailable: .*ulimit -u.*"));
  CHECK(have_no_child());
}

TEST_CASE("threads return 0 when all have run at once and returned 0", "[backend][start_ranks]") {
  std::latch all(4);
  std::atomic<int> ranks = 0;
  CHECK(run_threads(4, [&](int rank) {
          all.arrive_and_wait();
          ranks += 1 << rank;
          return 0;
        }) == 0);
  CHECK(ranks == 0b1111);
}

TEST_CASE("threads return the code of the rank that failed first, after all have ended",
          "[backend][start_ranks]") {
  // What a rank does after its body is not seen here, so the other waits a while after that.
  std::atomic<bool> first_ends = false;
  std::atomic<int> ended = 0;
  CHECK(run_threads(3, [&](int rank) {
          if (rank == 1) {
            ++ended;
            first_ends = true;
            return 3;
          }
          eventually([&] { return first_ends.load(); });
          std::this_thread::sleep_for(500ms);
          ++ended;
          return 4;
        }) == 3);
  CHECK(ended == 3);
}

TEST_CASE("lines of threads that fail together do not mix", "[backend][start_ranks]") {
  constexpr int ranks = 8;
  const std::string text(300, 'x');
  const Parent parent([&] {
    std::latch all(ranks);
    return run_threads(ranks, [&](int) -> int {
      all.arrive_and_wait();
      throw DeviceError(text);
    });
  });
  CHECK(parent.code() == failure_code);
  std::vector<std::string> lines, expected;
  std::istringstream stream(parent.err());
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  for (int rank = 0; rank < ranks; ++rank)
    expected.push_back("ddpsim: rank " + std::to_string(rank) + ": " + text);
  CHECK(lines == expected);
}
