#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/workload/device_kernel.hpp"
#include "model/workload/host_calls.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// An eager kernel: how many tensors it reads and writes together, how a GPU goes over them, and
/// what kind of call launches it. A product of two tensors is a 3, a copy a 2, a sum over rows or a
/// fill a 1; what touches only smaller things (means of rows, a gain, a mask all heads share) is a
/// 0. Tensors of other formats count by their bytes.
struct EagerKernel {
  double passes = 0;
  MemoryPattern pattern;
  Call call = Call::elementwise;
  int launches = 1;
  bool on_gpu = true, on_cpu = true;  ///< where it runs

  EagerKernel(int count) : passes(count) {}     // NOLINT: a list of numbers is a list of kernels
  EagerKernel(double count) : passes(count) {}  // NOLINT
  EagerKernel(double count, PatternKind of, std::int64_t rows = 1, std::int64_t columns = 1)
      : passes(count), pattern{.of = of, .rows = rows, .columns = columns} {}
};

namespace eager {

/// Between tensors that lie differently, or of which one is spread over the other.
inline EagerKernel strided(double passes) {
  return {passes, PatternKind::strided};
}
/// Over several number formats.
inline EagerKernel mixed(double passes) {
  return {passes, PatternKind::mixed};
}
inline EagerKernel fill(double passes) {
  return {passes, PatternKind::fill};
}
/// `columns` are added up, or the largest of them found, for each of `rows`; or `rows` for each of
/// `columns`; or all there is.
inline EagerKernel reduced(double passes, std::int64_t rows, std::int64_t columns) {
  return {passes, PatternKind::reduce, rows, columns};
}
inline EagerKernel sum_of_rows(double passes, std::int64_t rows, std::int64_t columns) {
  return {passes, PatternKind::sum_of_rows, rows, columns};
}
inline EagerKernel sum(double passes, std::int64_t elements) {
  return {passes, PatternKind::sum, 1, elements};
}
inline EagerKernel of(Call call, EagerKernel kernel) {
  kernel.call = call;
  return kernel;
}
/// Backward: of the same node as the one before, or added up by the engine.
inline EagerKernel again(EagerKernel kernel) {
  return of(Call::again, kernel);
}
/// A kernel that the same call launches as the kernel before it.
inline EagerKernel follows(EagerKernel kernel) {
  return of(Call::follows, kernel);
}
inline EagerKernel backward(EagerKernel kernel) {
  kernel.pattern.backward = true;
  return kernel;
}
inline EagerKernel only_gpu(EagerKernel kernel) {
  kernel.on_cpu = false;
  return kernel;
}
inline EagerKernel only_cpu(double passes) {
  EagerKernel kernel(passes);
  kernel.on_gpu = false;
  return kernel;
}

}  // namespace eager

/// Eager kernels over tensors of one size.
struct EagerKernels {
  std::int64_t elements = 0;
  std::vector<EagerKernel> passes;
  std::optional<DType> type{};  ///< of an element; none: as parameters are stored
};

enum class Pass : std::uint8_t { forward, backward };

/// Kernels of calls of PyTorch, in order, with what each takes the host.
class CallParts {
 public:
  explicit CallParts(Pass pass) : backward_(pass == Pass::backward) {}

  /// `least`: what a device has at least that launches it.
  struct Least {
    int multiprocessors = 0, capability = 0;
  };
  static constexpr Least hopper{0, 90};
  void add(const DeviceKernel& kernel, Call call, const Least& least = {0, 0});
  /// A memset of a few bytes that the blocks of the next kernel count in.
  void add_clearing(const Least& least = {0, 0}, int launches = 1);
  std::size_t size() const { return parts_.size(); }
  std::vector<KernelPart> take() && { return std::move(parts_); }

 private:
  bool backward_;
  std::vector<KernelPart> parts_;
  int held_ = 0;  ///< launches that the time of the call so far holds
};

/// `dtype`: of elements whose type is not said.
std::vector<KernelPart> parts_of(const std::vector<EagerKernels>& runs, Pass pass, DType dtype);

/// How cuBLAS takes a product.
struct ProductCall {
  int along_k = 2;
  Call call = Call::product;
  bool batched = false;
};

/// The kernels of a product of matrices. Source of what goes with one: the rules of
/// python/ddpsim/describe/products.py.
std::vector<KernelPart> parts_of(const Gemm& gemm, DType type, Bytes traffic,
                                 const ProductCall& product, Pass pass);

}  // namespace ddpsim
