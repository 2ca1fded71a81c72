#pragma once

#include "model/workload/device_kernel.hpp"
#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

/// The shapes of a described kernel by its class: the keys `gemm`, `attention`, `conv` and
/// `pattern` of a workload description.
const Map<Product>& product_map();
const Map<AttentionOperation>& attention_map();
const Map<ConvolutionShape>& convolution_map();
const Map<MemoryPattern>& pattern_map();

}  // namespace ddpsim
