#pragma once

#include "model/base/quantity.hpp"

namespace ddpsim {

// Sizes of what DDP announces besides gradients.
inline constexpr Bytes flag_size{4};         ///< an int32 or a float
inline constexpr Bytes rank_number_size{8};  ///< an int64
inline constexpr Bytes sparse_shape_size{
    72};  ///< nine int64: ProcessGroupGloo.cpp SparseTensorMetadata

}  // namespace ddpsim
