#pragma once

#include <csignal>

namespace ddpsim {

/// While it lives, Ctrl-C, a polite end (SIGTERM) and the end of the terminal (SIGHUP) only raise a
/// flag; or, where nothing is under way that could be lost, end the program at once with a line and
/// exit code 1. One may stand within another, and goes before it.
class Interruptible {
 public:
  enum class Answer { flag, end };
  explicit Interruptible(Answer answer = Answer::flag);
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
