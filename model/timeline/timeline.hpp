#pragma once

#include <vector>

#include "model/base/quantity.hpp"
#include "model/cluster/collective_choice.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// When one task of one rank happened.
struct TaskTimes {
  Instant issued{};    ///< the host began to enqueue it (or to run it)
  Instant enqueued{};  ///< the host was done enqueueing
  Instant start{};     ///< its work began; of a collective: when the last rank had arrived
  Instant end{};
};

/// Who did what, from when to when; predicted or measured, nobody downstream can tell. The marks of
/// the schedule are tasks too: a hook fired when its host task began, a bucket was full when its
/// all-reduce was issued.
struct Timeline {
  std::vector<std::vector<TaskTimes>> ranks;  ///< [rank][task index of that rank's schedule]
  Instant end{};                              ///< everything of every rank has ended

  /// What a prediction knows of a piece of work besides its times, to tell what bounds a step.
  struct Detail {
    Duration latency{};         ///< collectives: the part that is not transfer
    Duration filling{};         ///< collectives: of it, the part in which bytes are under way
    Duration alone{};           ///< what is computed: how long it takes beside no collective
    Duration last_launch{};     ///< it ends no earlier than this after its last launch
    CollectiveChoice choice{};  ///< collectives: how it runs, and what bounds it
    Duration take_up{};         ///< collectives: from being enqueued to the stream's taking it up
  };
  std::vector<Detail> details;  ///< [Schedule::works]; empty: measured, and not known
  Detail detail_of(const Task& task) const {
    return task.work < details.size() ? details[task.work] : Detail{};
  }
};

}  // namespace ddpsim
