#pragma once

#include <functional>

#include "model/program/job.hpp"

namespace ddpsim::program {

// Functions from Job to Job: variants of a step.

/// The step without the tasks for which `left_out` is true: what waited for one of them waits for
/// what that one waited for.
Job without(const Job& job, const std::function<bool(const Task&)>& left_out);

/// The step with nothing sent: no collectives, nor copies to the hosts and back for them. Where the
/// host of a device that computes on the host waited for a collective, the ranks meet; what threads
/// that communicate computed, the host computes where it is issued.
Job without_communication(const Job& job);

/// The step with a pause in the place of each collective of a comm hook, as long as `lasting` says
/// of its work, and nothing else sent: what the hook computes aside runs beside the rest as it does
/// in a real step. The ranks meet before each wait that all of them have. For devices that
/// compute on the host.
Job with_pauses(const Job& job, const std::function<Duration(const Work&)>& lasting);

/// The step in which no parameter is updated, so that they stay as they are.
Job without_updates(const Job& job);

/// The step `rounds` times, one behind the other; a timeline has the times of the last round.
/// Throws std::invalid_argument unless rounds >= 1.
Job repeated(Job job, int rounds);

/// The step, which must not communicate itself, with all-reduces of `size` beside it on a stream
/// and in a communicator of their own, and a pause before each. Ranks do not meet in it: each
/// computes at its own pace.
Job with_background(const Job& job, Bytes size, Duration pause = {});

}  // namespace ddpsim::program
