#pragma once

#include <cstdint>

namespace ddpsim {

/// How the operands of C[m x n] = A B lie in memory; all row-major. A linear layer of weight [n x
/// k] needs all three: forward nt, data gradient nn, weight gradient tn.
enum class GemmLayout : std::uint8_t {
  nn,  ///< A[m x k], B[k x n]
  nt,  ///< A[m x k], B[n x k]
  tn,  ///< A[k x m], B[k x n]
};

/// C = A B in fp32, on the calling thread, with the widest vector instructions this CPU has.
void gemm(GemmLayout layout, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
          const float* b, float* c);

/// The instructions `gemm` uses here: "AVX-512", "AVX2", "baseline".
const char* gemm_instructions();

}  // namespace ddpsim
