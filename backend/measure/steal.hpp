#pragma once

#include <chrono>
#include <string>

#include "backend/measure/measure_step.hpp"

namespace ddpsim {

/// What is measured while a larger share of the processors' time is stolen is doubtful.
inline constexpr double most_stolen = 0.05;

/// Steal time: what the host of a virtual machine gives to others of the time this machine's
/// processors would have worked. It comes in bursts of seconds, and what is measured meanwhile is a
/// slower machine. Source: proc_stat(5).
class Steal {
 public:
  /// From now on, as `stat` says.
  explicit Steal(std::string stat = "/proc/stat");

  /// The share of the time since then in which processors had work, however many there are, but
  /// of at least one processor's time; 0 where the system does not say, and before 50 ms (its ticks
  /// are 10 ms long).
  double share() const;

 private:
  struct Used {
    double worked = 0, stolen = 0;  // seconds, of all processors since the machine started
  };
  Used used_until_now() const;

  std::string stat_;
  std::chrono::steady_clock::time_point begin_;
  Used used_;
};

/// What `measure()` returns, once at most `most_stolen` was stolen meanwhile on every rank, or the
/// third time. Whatever it returns: so nothing is chosen by its outcome. Communicates.
template <typename Measure>
auto undisturbed(Backend& backend, Measure&& measure, const std::string& stat = "/proc/stat") {
  for (int left = 2;; --left) {
    const Steal steal(stat);
    auto result = measure();
    if (!any_rank(backend, steal.share() > most_stolen) || left == 0) return result;
  }
}

}  // namespace ddpsim
