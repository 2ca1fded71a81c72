#pragma once

#include "model/workload/architecture.hpp"

namespace ddpsim {

/// Mixtral's part of build_workload: one layer for the embedding, one per block, one for the head
/// and the loss. Sets no name. Throws std::invalid_argument if a number is not positive, heads do
/// not divide d_model, kv_heads do not divide heads, a token takes more experts than there are, or
/// there are too few tokens for every expert to get one.
Workload mixtral_workload(const MixtralShape& shape, const WorkloadSize& size);

}  // namespace ddpsim
