#pragma once

#include <string>
#include <vector>

#include "sim/predict/step_sequence.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// `--steps N`: the steps of each compared strategy, in the order of Comparison::compared.
std::vector<ConsecutiveSteps> steps_of(const Comparison& run, int count);

/// A row for every stretch of steps that are alike, and the sum.
Table steps_table(const Comparison& run, const std::vector<ConsecutiveSteps>& steps);

/// What "steps" holds in a result of `run --json`: `kinds` as in "results", and in `sequence`, for
/// every step, which of them it is.
Record steps_record(const Comparison& run, const ConsecutiveSteps& steps, const Result& result);

/// What the hooks of a scenario cost, a line for each strategy: those of the user's by predicting
/// the step without them as well; of a comm hook what it hands to collectives, its kernels and its
/// memory. Empty without hooks.
std::string hooks_text(const Comparison& run);

/// `--ddp-statistics`: what DDP's logger would say beside our own figures, if it runs for one of
/// the strategies. `steps`: as above, or empty for one step.
Page statistics_page(const Comparison& run, const std::vector<ConsecutiveSteps>& steps);
/// Nothing if the logger took no samples.
FieldValue statistics_value(const DdpAverages& logged);

/// The averages of the one step that was predicted.
DdpAverages averages_of(const Step& step);

}  // namespace ddpsim
