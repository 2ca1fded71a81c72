#pragma once

#include <vector>

#include "model/workload/device_kernel.hpp"

namespace ddpsim {

/// A convolution of pictures. PyTorch has channels first unless told otherwise.
struct ConvolutionCall {
  ConvolutionShape shape;    ///< its direction is not looked at
  DType type = DType::fp32;  ///< how it multiplies
  bool strided = false;
  bool biased = false;

  bool by_channel() const { return shape.groups > 1 && shape.groups == shape.channels; }
  /// Is it a product of matrices as they lie in memory, one for each picture?
  bool is_plain() const {
    return shape.groups == 1 && shape.window == 1 && !strided && !shape.channels_last &&
           shape.pixels % 2 == 0;
  }
};

/// What a GPU runs for it: cuDNN's kernels for tensor cores want channels last, and around them
/// copies change the layout and helpers clear memory; in fp32 without TF32 its algorithms have
/// several launches. The rules, and what they were seen in (ResNet-50 on an A100, ResNet-101 on an
/// H200), are those of python/ddpsim/describe/convolutions.py.
std::vector<KernelPart> forward_parts(const ConvolutionCall& call);

/// The kernels of the one call that makes these gradients; empty: the gradient is not wanted.
struct ConvolutionGradients {
  std::vector<KernelPart> input, weight, bias;
};
ConvolutionGradients gradient_parts(const ConvolutionCall& call, bool to_input);

}  // namespace ddpsim
