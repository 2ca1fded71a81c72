#include "tools/command/interruptible.hpp"

#include <string_view>

#include <unistd.h>

#include "tools/command/command.hpp"

namespace ddpsim {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

Interruptible::Interruptible(Answer answer) {
  struct sigaction action {};
  if (answer == Answer::flag)
    action.sa_handler = [](int) { interrupted = 1; };
  else
    action.sa_handler = [](int) {  // calls nothing that a handler may not
      constexpr std::string_view line = "ddpsim: interrupted\n";
      [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
      _exit(exit_failure);
    };
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
  // A terminal that is gone ends a command as politely; nohup had it ignored, and it stays so.
  sigaction(SIGHUP, nullptr, &before_hup_);
  if (before_hup_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

Interruptible::~Interruptible() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGHUP, &before_hup_, nullptr);
}

bool Interruptible::asked() {
  return interrupted != 0;
}

}  // namespace ddpsim
