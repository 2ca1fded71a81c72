#pragma once

#include <functional>

#include "model/schedule/schedule.hpp"

namespace ddpsim {

// Functions from Schedule to Schedule: variants of a step.

/// The step as `rank` carries it out, task by task: what another rank owns takes no time here, and
/// this rank does not wait for what only the owner waits for.
Schedule schedule_of_rank(Schedule schedule, int rank);

/// The step of ranks that all have inputs.
Schedule with_all_inputs(Schedule schedule);

/// The step without the tasks for which `left_out` is true: what waited for one of them waits for
/// what that one waited for.
Schedule without(const Schedule& schedule, const std::function<bool(const Task&)>& left_out);

/// The step with nothing sent: no collectives, nor copies to the hosts and back for them. Where the
/// host of a synchronous device waited for a collective, the ranks meet; what a comm hook computed
/// aside, it computes where it is called.
Schedule without_communication(const Schedule& schedule);

/// The step with a pause in the place of each collective of a comm hook, as long as `lasting` says
/// of its work, and nothing sent: what the hook computes aside runs beside the rest as it does in a
/// real step. The ranks meet before each wait. For synchronous devices.
Schedule with_pauses(const Schedule& schedule, const std::function<Duration(const Work&)>& lasting);

/// The step in which no parameter is updated, so that they stay as they are.
Schedule without_updates(const Schedule& schedule);

/// The step `rounds` times, one behind the other; a timeline has the times of the last round.
/// Throws std::invalid_argument unless rounds >= 1.
Schedule repeated(Schedule schedule, int rounds);

/// The step, which must not communicate itself, with all-reduces of `size` beside it and a pause
/// before each. Ranks do not meet in it: each computes at its own pace.
Schedule with_background(const Schedule& schedule, Bytes size, Duration pause = {});

}  // namespace ddpsim
