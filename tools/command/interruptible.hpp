#pragma once

#include <csignal>

namespace ddpsim {

/// While it lives, Ctrl-C, a polite end (SIGTERM) and the end of the terminal (SIGHUP) only raise a
/// flag.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Has one of them come?
  static bool asked();

 private:
  struct sigaction before_int_ {
  }, before_term_{}, before_hup_{};
};

}  // namespace ddpsim
