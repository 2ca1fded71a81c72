#pragma once

#include <csignal>

namespace ddpsim {

/// While it lives, the first Ctrl-C and polite end (SIGTERM) only raise a flag; the second ends the
/// program.
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
  }, before_term_{};
};

}  // namespace ddpsim
