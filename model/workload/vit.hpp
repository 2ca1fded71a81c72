#pragma once

#include "model/workload/architecture.hpp"

namespace ddpsim {

/// The vision transformer's part of build_workload, as torchvision writes it: one layer for patches
/// and positions, one per block, one for the head and the loss. Sets no name. Throws
/// std::invalid_argument if a number is not positive, heads do not divide d_model, or patches do
/// not divide the picture.
Workload vit_workload(const VitShape& shape, const WorkloadSize& size);

}  // namespace ddpsim
