#pragma once

#include "model/workload/architecture.hpp"

namespace ddpsim {

/// T5's part of build_workload: a layer for the encoder's embedding, one per block of the encoder,
/// its last norm, the decoder's embedding, one per block of the decoder, and the head with the
/// loss. Sets no name. Throws std::invalid_argument if a number is not positive or, without a
/// head_size, heads do not divide d_model.
Workload t5_workload(const T5Shape& shape, const WorkloadSize& size);

}  // namespace ddpsim
