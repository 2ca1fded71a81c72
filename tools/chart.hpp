#pragma once

#include <string>
#include <vector>

#include "sim/predict.hpp"

namespace ddpsim {

/// Timelines as text, one scale for all: what the compute and the communication stream of rank 0
/// do.
std::string timeline_chart(const std::vector<const Prediction*>& predictions);

}  // namespace ddpsim
