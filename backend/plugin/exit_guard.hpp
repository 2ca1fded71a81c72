#pragma once

#include <string>

namespace ddpsim {

/// While one exists, a call of exit() is a failure: code from elsewhere, such as a plugin's hook,
/// has no business to end the program as if its work were done. The process then prints one line,
/// "ddpsim: ... called exit(), which ends the whole program: ...", and ends with code 1.
///
/// Guards nest, on any thread. A call of _exit() is not seen: the other ranks miss the rank.
class ExitGuard {
 public:
  /// The line says `kind` and `name` of the guards of the thread that makes the call, the outermost
  /// first. Both must outlive the guard.
  ExitGuard(const char* kind, const std::string& name);
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

 private:
  std::string who() const;
  static void refuse_exit();

  const char* kind_;
  const std::string& name_;
  const ExitGuard* outer_;
};

}  // namespace ddpsim
