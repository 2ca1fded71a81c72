#pragma once

#include "backend/backend.hpp"
#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// One job on every rank, as one timeline: its zero is the common start, its classes are the ranks
/// that run (in loopback fewer than the job has). Every rank gets all of it. `sent`, if given: what
/// this rank sent. Throws DeviceError on every rank if one of them was given, or executed, another
/// one: their fingerprints are compared.
JobTimeline measure_step(Backend& backend, const program::Job& job, const RunOptions& options = {},
                         std::optional<Sent>* sent = nullptr);

/// True on every rank as soon as it is on one; the ranks stop together.
bool any_rank(Backend& backend, bool mine);

/// The largest of what each rank gives, on every rank.
double largest_of_ranks(Backend& backend, double mine);

}  // namespace ddpsim
