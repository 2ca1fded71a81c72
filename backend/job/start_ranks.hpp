#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace ddpsim {

/// Runs `body(rank)` in `ranks` processes forked from this one, waits for all of them, and returns
/// 0 if all returned 0, else the code of the rank that failed first.
///
/// In a rank. Signal handlers are back to their defaults (ignored signals stay ignored, as under
/// nohup), standard input is empty. The process leaves with body's code as soon as its output is
/// flushed: nothing of the parent's is destroyed and no atexit function runs. An exception becomes
/// one line on stderr, "ddpsim: rank 1: what", and code 2 if it is a std::invalid_argument, else 1.
/// If many ranks fail, the first few say so, and the parent says how many more there were. Codes
/// beyond 0..255 and output that cannot be written count as 1, too. So does a rank killed by
/// a signal, and the parent says "ddpsim: rank 1 was killed by signal 9 (Killed)". When the parent
/// dies, however it dies, the kernel kills the ranks.
///
/// How a job ends early. After the first failure the other ranks have `after_failure` to end by
/// themselves (none given: `timeout`); then they get SIGTERM, and a second later SIGKILL; a stopped
/// rank ends too. As long as none fails, there is no limit: a rank notices a silent peer itself.
/// SIGINT, SIGTERM and SIGHUP reach the ranks, from a terminal directly and otherwise passed on,
/// and start `timeout`; a second SIGINT kills at once. They end here: no handler of the caller sees
/// them, and the code is that of the ranks.
///
/// On return, also by an exception, no process of the job is left, and handlers and signal mask are
/// as before. Children the caller had are left alone. Call it from the main thread before any other
/// thread has been started.
/// Throws std::invalid_argument if ranks < 1, DeviceError if not all ranks could be started.
int run_processes(int ranks, std::chrono::milliseconds timeout,
                  const std::function<int(int rank)>& body,
                  std::optional<std::chrono::milliseconds> after_failure = std::nullopt);

/// Runs `body(rank)` in `ranks` threads, all at once, and returns 0 if all returned 0, else the
/// code of the rank that failed first. Exceptions become lines and codes as above; the other ranks
/// are waited for, however long they take.
/// Throws std::invalid_argument if ranks < 1, DeviceError if not all threads could be started; then
/// none has run `body`.
int run_threads(int ranks, const std::function<int(int rank)>& body);

}  // namespace ddpsim
