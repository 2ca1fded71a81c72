#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/costs.hpp"
#include "model/program/job.hpp"
#include "model/timeline/job_timeline.hpp"
#include "sim/engine/plan.hpp"

namespace ddpsim {

/// How long a job's works take its ranks, which may differ.
struct JobCosts {
  /// The host stands still before it enqueues a task.
  struct Pause {
    std::uint32_t task = 0;
    Duration length{};
  };

  std::vector<Costs> kinds;                  ///< each with an entry for every one of Job::works
  std::vector<std::uint16_t> of_rank;        ///< [rank] index into `kinds`
  std::vector<std::vector<Pause>> pauses{};  ///< [kind] by task; may end before `kinds` do
};

/// Runs a job in virtual time.
///
/// Each rank has a host, which walks its program in order: it enqueues the tasks of other streams,
/// and does those of its own (stream 0) once what they wait for has ended. A stream begins its
/// tasks in order, as many at a time as it has lanes, each not before everything in `after` has
/// ended and the host has enqueued it: a kernel of the device its first launch, all else the whole
/// and WorkCost::take_up besides. A kernel ends not before `last_launch` past the moment the host
/// enqueued its last one.
///
/// What a task occupies follows from its action. A collective meets its group: it begins when the
/// last member arrives and ends for all at once (flights.hpp). Those of a communicator begin in the
/// order of issue, and at most `at_once` of them are under way. The k-th send of a pair of ranks
/// meets the k-th receive. Everything else computes: on the host, and on streams that are not
/// `beside`, one thing at a time; on a stream that is, at full speed. Where such a stream `halts`,
/// the rank's kernels stand still meanwhile, and of these there is one at a time. Of what could
/// begin at the same instant the host's goes first, then the streams' by their numbers. While a
/// kernel and a collective are active on a rank both run slower by the collective's
/// WorkCost::beside, re-evaluated whenever either starts or ends; a rank that has arrived holds its
/// SMs while it waits for the others. A run of launches the host has not finished enqueueing counts
/// as active to its end.
///
/// `plans`: plans_of(job), for who simulates a job more than once. Throws std::invalid_argument for
/// costs of another job, a program that waits for a later task or
/// is repeated (rounds, `beside`), a collective of a rank that is in no group, and ranks that wait
/// for each other for ever.
JobTimeline simulate(const program::Job& job, const JobCosts& costs);
JobTimeline simulate(const program::Job& job, const Plans& plans, const JobCosts& costs);

}  // namespace ddpsim
