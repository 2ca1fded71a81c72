#include "tools/report/progress.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/report/notes.hpp"

namespace ddpsim {

constexpr int bars = 30, line = 79;

Progress::Progress(bool quiet, InLogs in_logs)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1), in_logs_(in_logs == InLogs::yes) {}

Progress::~Progress() {
  if (drawn_) draw(fmt::format("\r{:<{}}\r", "", line));
}

void Progress::show(const std::string& what, double fraction) {
  if (quiet_) return;
  if (!terminal_) {
    if (in_logs_) log(what, fraction);
    return;
  }
  if (std::chrono::steady_clock::now() - begin_ < std::chrono::seconds(1)) return;
  drawn_ = true;
  const auto full = static_cast<std::size_t>(bars * std::clamp(fraction, 0.0, 1.0));
  const std::string bar = fmt::format("[{:<{}}] {}", std::string(full, '#'), bars, what);
  draw(fmt::format("\r{:<{}.{}}", bar, line, line));
}

void Progress::log(const std::string& what, double fraction) {
  const auto now = std::chrono::steady_clock::now();
  if (now - logged_ < std::chrono::seconds(10)) return;
  logged_ = now;
  note("after {} s: {}, {:.0f} % done",
       std::chrono::duration_cast<std::chrono::seconds>(now - begin_).count(), what,
       100 * std::clamp(fraction, 0.0, 1.0));
}

}  // namespace ddpsim
