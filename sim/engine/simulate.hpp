#pragma once

#include <cstdint>
#include <span>

#include "model/cost/costs.hpp"
#include "model/schedule/schedule.hpp"
#include "model/timeline/timeline.hpp"

namespace ddpsim {

/// What a rank does, and how long that takes it. Both must outlive the simulation.
struct RankPlan {
  const Schedule* schedule = nullptr;
  const Costs* costs = nullptr;
};

/// Runs one schedule per rank in virtual time.
///
/// Each rank has a host, a compute stream, a communication stream for every communicator, and side
/// streams (Stream::aside, to_host, to_device). The host walks its tasks in order; a stream runs
/// its tasks in order, each not before the host has enqueued its first launch and everything in
/// `after` has ended, and it ends not before `last_launch` past the moment the host enqueued its
/// last one. A rank computes one thing at a time: kernels on the compute stream and work of the
/// host's own take turns. The k-th collective of a communicator is one operation of all ranks: it
/// starts when the last rank arrives and ends for all at once. Of one communicator,
/// Schedule::collectives_at_once may be under way; those under way at the same time, of any
/// communicator, share the links: their transfers, not their latencies, take as many times longer
/// as keeps all together from moving more than one transfer alone would. A rank that has arrived
/// holds its SMs while it waits for the others. While a kernel and a collective are active on a
/// rank both run slower by the collective's WorkCost::beside, re-evaluated whenever either starts
/// or ends. A run of launches the host has not finished enqueueing counts as active to its end: its
/// gaps are shorter than what a collective moves at a time.
///
/// A collective is taken up no earlier than WorkCost::take_up after it was enqueued.
///
/// Ranks that do the same may be given once: a single plan stands for all of them.
/// Throws std::invalid_argument if the ranks issue different numbers of collectives, or tasks wait
/// for later ones. `events`, if given, receives how many events were taken from the queue.
Timeline simulate(std::span<const RankPlan> ranks, std::uint64_t* events = nullptr);
Timeline simulate(const Schedule& schedule, const Costs& costs, std::uint64_t* events = nullptr);

}  // namespace ddpsim
