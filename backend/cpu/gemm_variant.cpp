// One GEMM, compiled once for each set of vector instructions (see CMakeLists.txt): the build names
// the variant. Eigen's namespace is renamed with it, because the linker keeps one of several inline
// functions of a name, and must not keep the AVX-512 one for a CPU without it. For the same reason
// nothing else is included here.
#define Eigen DDPSIM_GEMM_VARIANT
#include <Eigen/Core>
#undef Eigen

namespace eigen = DDPSIM_GEMM_VARIANT;

#define DDPSIM_JOIN_(a, b) a##b
#define DDPSIM_JOIN(a, b) DDPSIM_JOIN_(a, b)

extern "C" void DDPSIM_JOIN(ddpsim_gemm_, DDPSIM_GEMM_VARIANT)(int layout, long m, long n, long k,
                                                               const float* a, const float* b,
                                                               float* c) {
  using Matrix = eigen::Matrix<float, eigen::Dynamic, eigen::Dynamic, eigen::RowMajor>;
  using Operand = eigen::Map<const Matrix>;
  eigen::Map<Matrix> result(c, m, n);
  if (layout == 0)
    result.noalias() = Operand(a, m, k) * Operand(b, k, n);
  else if (layout == 1)
    result.noalias() = Operand(a, m, k) * Operand(b, n, k).transpose();
  else
    result.noalias() = Operand(a, k, m).transpose() * Operand(b, k, n);
}
