#pragma once

#include <vector>

#include "model/workload/architecture.hpp"
#include "model/workload/picture_modules.hpp"

namespace ddpsim {

/// How a block is trained: with batch norms that are not, and from pictures of frozen modules.
struct BlockTraining {
  bool frozen_norms = false;
  Input input = Input::activation;
};

/// A residual block (`planes`: the channels of its stage): 3x3 - 3x3, or, as a bottleneck, 1x1 -
/// 3x3 - 1x1 with four times the channels out (the stride is the 3x3's: torchvision's "v1.5"). The
/// shortcut is projected if the shape changes. torchvision computes it last, so that backward comes
/// to it first.
std::vector<Module> residual_block(const PictureModules& x, Pictures& pictures,
                                   const ResNetShape& shape, std::int64_t planes,
                                   std::int64_t stride, const BlockTraining& training = {});

}  // namespace ddpsim
