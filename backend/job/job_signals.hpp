#pragma once

#include <chrono>
#include <optional>

#include <signal.h>

namespace ddpsim {

/// The signals that concern a job (SIGCHLD, and SIGHUP, SIGINT, SIGTERM unless they are ignored),
/// kept from their handlers while this exists and taken by next(). Handlers and mask are then as
/// before.
class JobSignals {
 public:
  JobSignals();
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;

  /// The next signal, of several the one with the lowest number; none if no signal comes before
  /// `until`.
  std::optional<siginfo_t> next(
      const std::optional<std::chrono::steady_clock::time_point>& until) const;

  /// In a rank: handlers to default and the caller's mask, as exec would have it.
  void restore_in_rank() const;

 private:
  sigset_t taken_{}, mask_before_{};
  struct sigaction child_action_before_ = {};
};

}  // namespace ddpsim
