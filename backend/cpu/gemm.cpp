#include "backend/cpu/gemm.hpp"

extern "C" {
using Gemm = void(int layout, long m, long n, long k, const float* a, const float* b, float* c);
Gemm ddpsim_gemm_baseline;
#if DDPSIM_X86
Gemm ddpsim_gemm_avx2;
Gemm ddpsim_gemm_avx512;
#endif
}

namespace ddpsim {
namespace {

struct Variant {
  Gemm* function;
  const char* name;
};

Variant best_variant() {
#if DDPSIM_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    return {ddpsim_gemm_avx512, "AVX-512"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {ddpsim_gemm_avx2, "AVX2"};
#endif
  return {ddpsim_gemm_baseline, "baseline"};
}

const Variant variant = best_variant();

}  // namespace

void gemm(GemmLayout layout, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
          const float* b, float* c) {
  variant.function(static_cast<int>(layout), m, n, k, a, b, c);
}

const char* gemm_instructions() {
  return variant.name;
}

}  // namespace ddpsim
