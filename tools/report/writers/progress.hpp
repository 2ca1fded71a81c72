#pragma once

#include <chrono>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace ddpsim {

/// How far a command is, on stderr. On a terminal that is a bar, once the work has taken longer
/// than a second, which is gone when the work ends. Elsewhere, such as in the log of a batch job,
/// it is nothing, or where the command says so a line every ten seconds, however long a part of the
/// work takes.
class Progress {
 public:
  enum class InLogs : bool { no, yes };
  explicit Progress(bool quiet, InLogs in_logs = InLogs::no,
                    std::chrono::milliseconds between_lines = std::chrono::seconds{10});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` of all work is done, from 0 to 1; `what` is under way.
  void show(const std::string& what, double fraction);

  /// Is stderr a terminal that shows it?
  bool shown() const { return terminal_ && !quiet_; }

 private:
  using Clock = std::chrono::steady_clock;
  void write_lines(const std::stop_token& stop);

  bool quiet_, terminal_, drawn_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::duration between_lines_;
  std::mutex guard_;  ///< of what the next line says
  std::string what_;
  double fraction_ = 0;
  std::jthread lines_;  ///< writes them; none where nobody asked for lines
};

}  // namespace ddpsim
