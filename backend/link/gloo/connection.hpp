#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "backend/cpu/priority.hpp"
#include "backend/execute/stream_threads.hpp"
#include "backend/job/communicator.hpp"
#include "backend/job/rendezvous.hpp"
#include "backend/job/step_clock.hpp"

namespace ddpsim {

/// What a CPU rank communicates with: the connections to the other ranks, the threads that alone
/// may use them (see Role), and the clock of a step.
///
/// The host thread calls everything here; what it hands to the communication threads calls
/// `communicator` and `now`.
class Connection {
 public:
  Connection(Rendezvous& rendezvous, int rank, int ranks, const std::string& interface,
             std::chrono::milliseconds timeout);

  int rank() const { return communicator_.rank(); }
  int ranks() const { return communicator_.ranks(); }
  Communicator& communicator() { return communicator_; }
  StreamThreads& threads() { return threads_; }

  /// Since the step began.
  Instant now() const { return clock_.now(); }

  /// Makes `call` on a communication thread and returns when the call has ended.
  template <typename Call>
  void on_thread(Call call) {
    threads_.wait(threads_.submit(call));
  }

  /// Returns on all ranks at one instant, which is from then on the zero of `now`.
  void start_together();
  /// Returns on all ranks at one instant.
  void meet();
  /// The latest of every rank's k-th instant since the step began.
  std::vector<Instant> latest(std::vector<Instant> mine);

  /// Makes `call`, whose data communication threads work on. After an error none of them does: the
  /// connections end, and what was handed over is dropped.
  template <typename Call>
  void or_disconnect(Call call) {
    try {
      call();
    } catch (...) {
      communicator_.disconnect();
      threads_.abandon();
      throw;
    }
  }

 private:
  Communicator communicator_;
  StepClock clock_;
  /// Last: its jobs use the others.
  StreamThreads threads_{[] { take_role(Role::communication); }};
};

}  // namespace ddpsim
