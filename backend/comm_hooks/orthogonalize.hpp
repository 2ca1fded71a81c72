#pragma once

#include <cstdint>
#include <span>

namespace ddpsim {

/// Makes the columns of a row-major rows x rank matrix orthonormal, as powerSGD_hook.py's
/// _orthogonalize: Gram-Schmidt up to rank 2 and for 16-bit numbers, else QR by Householder, whose
/// columns may point the other way. `epsilon` is added to every norm, of Gram-Schmidt only. A
/// column of zeros becomes NaN if it is 0, as in torch.
void orthogonalize(std::span<float> matrix, std::int64_t rows, std::int64_t rank, double epsilon,
                   bool sixteen_bit);

}  // namespace ddpsim
