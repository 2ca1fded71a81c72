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
}

Interruptible::~Interruptible() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

bool Interruptible::asked() {
  return interrupted != 0;
}

}  // namespace ddpsim
