#include "tools/report/writers/progress.hpp"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/report/writers/notes.hpp"

namespace ddpsim {

constexpr int bars = 30, line = 79;

Progress::Progress(bool quiet, InLogs in_logs, std::chrono::milliseconds between_lines)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1), between_lines_(between_lines) {
  if (quiet || terminal_ || in_logs == InLogs::no) return;
  // Signals are for the threads that work.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    lines_ = std::jthread([this](const std::stop_token& stop) { write_lines(stop); });
  } catch (const std::system_error&) {  // no more threads: then without lines
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  if (drawn_) draw(fmt::format("\r{:<{}}\r", "", line));
}

void Progress::show(const std::string& what, double fraction) {
  if (quiet_) return;
  if (!terminal_) {
    const std::lock_guard lock(guard_);
    what_ = what;
    fraction_ = fraction;
    return;
  }
  if (Clock::now() - begin_ < std::chrono::seconds(1)) return;
  drawn_ = true;
  const auto full = static_cast<std::size_t>(bars * std::clamp(fraction, 0.0, 1.0));
  const std::string bar = fmt::format("[{:<{}}] {}", std::string(full, '#'), bars, what);
  draw(fmt::format("\r{:<{}.{}}", bar, line, line));
}

void Progress::write_lines(const std::stop_token& stop) {
  std::condition_variable_any never;  // but for the end
  std::unique_lock lock(guard_);
  for (auto next = begin_ + between_lines_;; next += between_lines_) {
    never.wait_until(lock, stop, next, [] { return false; });
    if (stop.stop_requested()) return;
    if (what_.empty()) continue;
    note("after {} s: {}, {:.0f} % done",
         std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin_).count(), what_,
         100 * std::clamp(fraction_, 0.0, 1.0));
  }
}

}  // namespace ddpsim
