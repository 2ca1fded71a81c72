#pragma once

#include <string>

#include "model/workload/workload.hpp"

namespace ddpsim {

/// A convolution as cuDNN runs it on tensor cores, on tensors with channels first, as PyTorch has
/// them unless told otherwise: its kernels want channels last, and around them copies change the
/// layout. Seen for the 53 convolutions of ResNet-50 in TF32 in a trace of an A100
/// (github:facebookresearch/HolisticTraceAnalysis@f4d0062: tests/data/nccl_parser_config):
///
///     a window of one pixel, no stride, rows of 16 bytes   a product of matrices for each picture,
///                                                          in one launch, without copies
///     others, forward            copies of data and weight; of the result if the sum is long
///     others, gradient of data   copies of weight and gradient, and of the result
///     others, of the weight      copies of gradient and data; of the result if the window is
///                                larger
///
/// The sum over all pixels that a weight's gradient is comes in parts if the result is small, or
/// of each picture if the convolution is a plain product; a kernel of its own adds them up.
///
/// Pictures of three channels are multiplied in fp32, forward: tensor cores want channels in fours.
struct ConvolutionLayout {
  bool first_of_network = false;  ///< its pictures have three channels, which forward leaves alone
  bool plain = false;
  bool wide_window = false;
};
/// What copies move before and after the product, and the sum of parts; none is a kernel without
/// launches.
struct AroundProduct {
  Bytes moved_before, moved_after;
  int launches_before = 0, launches_after = 0;
};
AroundProduct around_forward(const ConvolutionLayout& layout, const Gemm& gemm, Bytes data,
                             Bytes weight, Bytes result);
AroundProduct around_data_gradient(const ConvolutionLayout& layout, Bytes gradient, Bytes weight,
                                   Bytes result);
AroundProduct around_weight_gradient(const ConvolutionLayout& layout, const Gemm& gemm,
                                     Bytes gradient, Bytes data, Bytes result);

}  // namespace ddpsim
