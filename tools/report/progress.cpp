#include "tools/report/progress.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/report/notes.hpp"

namespace ddpsim {

constexpr int bars = 30, line = 79;

Progress::Progress(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_) draw(fmt::format("\r{:<{}}\r", "", line));
}

void Progress::show(const std::string& what, double fraction) {
  if (!shown_ || std::chrono::steady_clock::now() - begin_ < std::chrono::seconds(1)) return;
  drawn_ = true;
  const auto full = static_cast<std::size_t>(bars * std::clamp(fraction, 0.0, 1.0));
  const std::string bar = fmt::format("[{:<{}}] {}", std::string(full, '#'), bars, what);
  draw(fmt::format("\r{:<{}.{}}", bar, line, line));
}

}  // namespace ddpsim
