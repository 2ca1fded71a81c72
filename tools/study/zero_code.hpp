#pragma once

#include <string>
#include <vector>

#include "model/parallel/training.hpp"

namespace ddpsim {

/// The options of a ZeRO as keys of a scenario, "overlap_comm: true" each: its variant and what is
/// other than by itself, or than `given` has it.
std::vector<std::string> zero_options(const Training& training, const ZeroSettings& given);

/// The same for those whose code it is, under a line that says what it is: DeepSpeed's
/// configuration, Megatron-LM's arguments, PyTorch's optimizer. "" where it is the user's own.
std::string zero_code(const Training& training);

}  // namespace ddpsim
