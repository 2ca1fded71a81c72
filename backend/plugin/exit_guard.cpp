#include "backend/plugin/exit_guard.hpp"

#include <atomic>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace ddpsim {
namespace {

thread_local const ExitGuard* innermost = nullptr;
std::atomic<int> guards{0};

}  // namespace

std::string ExitGuard::who() const {
  return fmt::format("{}{} {}", outer_ == nullptr ? "" : outer_->who() + ": ", kind_, name_);
}

/// Runs in exit(), on the thread that called it, before anything else that is registered there.
void ExitGuard::refuse_exit() {
  if (guards == 0) return;
  const std::string line =
      fmt::format("ddpsim: {} called exit(), which ends the whole program: return, or throw\n",
                  innermost != nullptr ? innermost->who() : "a thread of a plugin");
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  _exit(1);
}

ExitGuard::ExitGuard(const char* kind, const std::string& name)
    : kind_(kind), name_(name), outer_(innermost) {
  // Anew for each outermost guard: what was registered last runs first.
  if (guards++ == 0) std::atexit(refuse_exit);
  innermost = this;
}

ExitGuard::~ExitGuard() {
  innermost = outer_;
  --guards;
}

}  // namespace ddpsim
