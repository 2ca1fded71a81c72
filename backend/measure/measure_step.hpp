#pragma once

#include "backend/backend.hpp"

namespace ddpsim {

/// One step on every rank, as one timeline: its zero is the common start. Every rank gets all of
/// it. `sent`, if given: what this rank sent. Throws DeviceError on every rank if one of them was
/// given, or executed, another schedule: their fingerprints are compared.
Timeline measure_step(Backend& backend, const Schedule& schedule, const RunOptions& options = {},
                      std::optional<Sent>* sent = nullptr);

/// The same of a step that is a job too, whose deed t is what task t of the schedule does. Backends
/// that can run the job, any other the schedule (`job` may be null); times are of the schedule's
/// tasks either way, of one that this rank leaves out the instant at which the task before it was
/// issued. `options.pause_before` is a task of the schedule.
Timeline measure_step(Backend& backend, const Schedule& schedule, const program::Job* job,
                      const RunOptions& options = {}, std::optional<Sent>* sent = nullptr);

/// Which of the two the backend runs: the job, unless it is null or the backend refuses it; then
/// null. The same on all ranks.
const program::Job* job_to_run(Backend& backend, const program::Job* job);

/// True on every rank as soon as it is on one; the ranks stop together.
bool any_rank(Backend& backend, bool mine);

/// The largest of what each rank gives, on every rank.
double largest_of_ranks(Backend& backend, double mine);

}  // namespace ddpsim
