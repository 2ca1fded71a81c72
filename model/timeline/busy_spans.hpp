#pragma once

#include <utility>
#include <vector>

#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// When the stream on which kernels run was busy: pairs of start and end, in order; no two touch
/// each other.
using BusySpans = std::vector<std::pair<Instant, Instant>>;

BusySpans busy_spans(const RankOfJob& rank);

/// The spans as such: sorted, and those that touch or overlap as one.
BusySpans united(BusySpans spans);

/// The lengths of all spans, together.
Duration total_length(const BusySpans& spans);

/// How much of the time between two instants the stream stood still.
Duration idle_within(const BusySpans& busy, Instant from, Instant to);

}  // namespace ddpsim
