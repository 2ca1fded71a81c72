#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tools/command/validation.hpp"

namespace ddpsim {

/// "ddpsim.validate/1": predicted and measured have the shape of `run`'s results, and error holds
/// their times as fractions of the measured one, the overlap ratio as a difference. A result of `--vary`
/// has its keys and values under "set".
nlohmann::ordered_json validation_json(const Validation& validation);

/// Both sides as text: steps, streams, where the difference comes from, buckets, pictures.
std::string validation_text(const Validation& validation);

/// "bucketed, 4 MiB, comm_hook: fp16_compress, no_sync: true": what a row of it is called.
std::string label_of(const ValidatedStep& step);

/// A line of text if so much of the processors' time was stolen that the figures are doubtful.
std::string doubt_about(double stolen);

/// Error of a prediction as a fraction of what was measured; zero where both are.
double relative_error(Duration predicted, Duration measured);

/// The median over strategies of the step's |error|.
double median_step_error(const Validation& validation);

}  // namespace ddpsim
