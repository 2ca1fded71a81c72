#pragma once

#include <chrono>

#include <pthread.h>
#include <sys/types.h>

namespace ddpsim {

/// How long a thread wanted a processor and was given none.
///
/// Samples the thread now and then. If the thread is ready to run at a sample, it is taken to have
/// been ready since the sample before, and the time in which it did not run meanwhile was lacking.
/// A thread that sleeps, waits for others or is stopped lacks nothing.
class ProcessorLack {
 public:
  /// Watches the calling thread, which must outlive this object.
  ProcessorLack();
  /// What the thread lacked since the last look, which was `passed` ago.
  std::chrono::nanoseconds look(std::chrono::nanoseconds passed);
  pid_t thread() const { return thread_; }

 private:
  std::chrono::nanoseconds given() const;
  bool ready() const;

  pid_t thread_;
  clockid_t clock_{};
  bool has_clock_;
  std::chrono::nanoseconds given_before_;
};

}  // namespace ddpsim
