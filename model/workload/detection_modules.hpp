#pragma once

#include <string>
#include <vector>

#include "model/workload/picture_modules.hpp"

namespace ddpsim {

/// What the detectors of torchvision share beyond the modules of convolutional networks.

/// `levels`: the same modules over pictures of several sizes, in forward order of the levels. They
/// are one module with one set of parameters, whose gradients autograd adds up, so that each is
/// complete after the first level's, which backward comes to last.
Module over_levels(const PictureModules& x, const std::vector<std::vector<Module>>& levels);

/// Predictions of several levels, of which each place has some numbers for every anchor, become one
/// tensor of all levels' anchors: a copy for each level, and one of all.
Module joined_predictions(const PictureModules& x, const std::string& name,
                          const std::vector<Pictures>& levels);

}  // namespace ddpsim
