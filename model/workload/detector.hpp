#pragma once

#include "model/workload/architecture.hpp"

namespace ddpsim {

/// The detectors' part of build_workload, as torchvision writes and trains them from a trained
/// backbone: what is not trained has a forward pass alone. Pictures have the size that the detector
/// makes them. Of what chooses boxes by their values (matching, sorting, suppression of
/// neighbours) and of the losses of boxes nothing is counted. Set no name. Throw
/// std::invalid_argument if a number is not positive or beyond any memory.
Workload ssd_workload(const SsdShape& shape, const WorkloadSize& size);
Workload mask_rcnn_workload(const MaskRcnnShape& shape, const WorkloadSize& size);

}  // namespace ddpsim
