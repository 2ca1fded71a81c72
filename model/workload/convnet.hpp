#pragma once

#include "model/workload/architecture.hpp"

namespace ddpsim {

/// The convolutional networks' part of build_workload, as torchvision writes them: one layer per
/// residual block (VGG: per run of convolutions up to a pool), with a stem before and a head with
/// the loss behind. Set no name. Throw std::invalid_argument if a number is not positive, a ResNet
/// has not four stages, or the picture is pooled away.
Workload resnet_workload(const ResNetShape& shape, const WorkloadSize& size);
Workload vgg_workload(const VggShape& shape, const WorkloadSize& size);
Workload efficientnet_workload(const EfficientNetShape& shape, const WorkloadSize& size);

}  // namespace ddpsim
