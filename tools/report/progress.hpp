#pragma once

#include <chrono>
#include <string>

namespace ddpsim {

/// A bar on stderr: only on a terminal, only once the work has taken longer than a second; gone
/// when it ends.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` of all work is done, from 0 to 1; `what` is under way.
  void show(const std::string& what, double fraction);

  /// Is stderr a terminal that shows it?
  bool shown() const { return shown_; }

 private:
  bool shown_, drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace ddpsim
