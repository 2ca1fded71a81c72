#pragma once

#include <string>

#include "model/workload/workload.hpp"

namespace ddpsim {

/// What cuDNN does to the layout of a convolution's tensors, of 4 bytes an element and with channels
/// first (NCHW), as PyTorch has them unless told otherwise: its kernels for TF32 want channels last.
/// Both operands are copied before and the result after, except where the convolution is a plain
/// product (a window of one pixel, without a stride), which needs no order of pixels.
///
/// In a trace of ResNet-50 on an A100 (github:facebookresearch/HolisticTraceAnalysis@f4d0062:
/// tests/data/nccl_parser_config) the 53 convolutions of a forward pass bring 60 such copies, where
/// this rule has 60, and backward 151, where it has 117.
struct LayoutCopies {
  Kernel before, after;
};
LayoutCopies layout_copies(const std::string& name, Bytes operands, Bytes result);

/// Does a convolution touch no more than its product's operands and result, each once?
bool is_plain_product(const Gemm& gemm, Bytes traffic, Bytes element);

}  // namespace ddpsim
