#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/comparison.hpp"

namespace ddpsim {

/// How much less than `none`, the same step without communication, rank 0 spends on the optimizer
/// because a comm hook shares it out among ranks; nothing where none does.
///
/// Each bucket's update costs the share of the optimizer's work that its parameters have by their
/// bytes. In ZeRO's first iterations nobody updates, and that is all of it. Interference with the
/// broadcasts is left out: a step may be shorter by less.
std::optional<Duration> saved_by_sharing(const Step& step, const StepMetrics& none);

/// "each rank updates only its share of the parameters, which takes 5.215 ms less ...": what such a
/// step is shorter by, and what communication costs by itself. `saved`: saved_by_sharing.
std::string sharing_text(const Step& step, const StepMetrics& none, Duration saved);

/// A note for each compared step whose update is shared.
std::vector<std::string> sharing_notes(const Comparison& run);

}  // namespace ddpsim
