#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backend/link/gloo/connection.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// The tasks of one step that the communication threads run: each in the queue of its communicator,
/// behind what it waits for there.
class HandedOver {
 public:
  /// Arranges the queues for the schedule, which must outlive this object.
  HandedOver(Connection& connection, const Schedule& schedule);

  /// Hands a task over. `call` takes a tag for its communication and runs when the task's turn
  /// comes; until finish() everything it refers to must stay.
  template <typename Call>
  void submit(std::uint32_t index, Call call) {
    tickets_[index] = connection_.threads().submit(
        [this, index, call, tag = connection_.next_tag()] {
          arrivals_[index] = connection_.now();
          call(tag);
        },
        schedule_.work_of(schedule_.tasks[index]).communicator, awaited(schedule_.tasks[index]));
  }

  /// Blocks until what the task waits for has ended.
  void wait_for_inputs(const Task& task);
  /// Blocks until everything has ended, background all-reduces too.
  void finish();

  /// The collectives that were handed over, and when this rank reached one.
  std::vector<std::uint32_t> collectives() const;
  Instant arrival(std::uint32_t index) const { return arrivals_[index]; }

 private:
  std::vector<std::uint64_t> awaited(const Task& task) const;

  Connection& connection_;
  const Schedule& schedule_;
  std::vector<Instant> arrivals_;       ///< [task] when its turn came
  std::vector<std::uint64_t> tickets_;  ///< [task] 0: not handed over
};

}  // namespace ddpsim
