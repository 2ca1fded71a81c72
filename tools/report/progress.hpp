#pragma once

#include <chrono>
#include <string>

namespace ddpsim {

/// How far a command is, on stderr. On a terminal that is a bar, once the work has taken longer
/// than a second, which is gone when the work ends. Elsewhere, such as in the log of a batch job,
/// it is nothing, or a line every ten seconds where the command says so.
class Progress {
 public:
  enum class InLogs : bool { no, yes };
  explicit Progress(bool quiet, InLogs in_logs = InLogs::no);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` of all work is done, from 0 to 1; `what` is under way.
  void show(const std::string& what, double fraction);

 private:
  void log(const std::string& what, double fraction);

  bool quiet_, terminal_, in_logs_, drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), logged_ = begin_;
};

}  // namespace ddpsim
