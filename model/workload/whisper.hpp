#pragma once

#include "model/workload/architecture.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Hugging Face's WhisperForConditionalGeneration with fused attention and without dropout.
/// `size.sequence` counts the decoder's tokens. Throws std::invalid_argument if a number is not
/// positive or beyond any memory, heads do not divide d_model, or the decoder has learned fewer
/// positions than there are tokens.
Workload whisper_workload(const WhisperShape& shape, const WorkloadSize& size);

}  // namespace ddpsim
