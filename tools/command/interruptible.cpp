#include "tools/command/interruptible.hpp"

namespace ddpsim {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

Interruptible::Interruptible() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
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
