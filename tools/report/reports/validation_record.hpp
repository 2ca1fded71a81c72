#pragma once

#include "tools/report/records/record.hpp"
#include "tools/study/validation.hpp"

namespace ddpsim {

/// "ddpsim.validate/1": predicted and measured have the shape of `run`'s results, and error holds
/// their times as fractions of the measured one, the overlap ratio as a difference. A result of
/// `--vary` has its keys and values under "set".
Record validation_record(const Validation& validation);

/// The steps that the others are judged by: without communication, and under `naive` if it is
/// there.
const ValidatedStep& none_of(const Validation& validation);
const ValidatedStep& naive_of(const Validation& validation);

/// Error of a prediction as a fraction of what was measured; zero where both are.
double relative_error(Duration predicted, Duration measured);

/// The median over strategies of the step's |error|.
double median_step_error(const Validation& validation);

}  // namespace ddpsim
