#include "model/workload/convolution.hpp"

namespace ddpsim {
namespace {

Kernel copies(const std::string& name, Bytes size, int launches) {
  Kernel kernel;
  kernel.name = name + ".layout";
  kernel.traffic = 2 * size;
  kernel.launches = launches;
  return kernel;
}

}  // namespace

LayoutCopies layout_copies(const std::string& name, Bytes operands, Bytes result) {
  return {copies(name, operands, 2), copies(name, result, 1)};
}

bool is_plain_product(const Gemm& gemm, Bytes traffic, Bytes element) {
  const double elements =
      static_cast<double>(gemm.batch) * (static_cast<double>(gemm.m) * static_cast<double>(gemm.k) +
                                         static_cast<double>(gemm.k) * static_cast<double>(gemm.n) +
                                         static_cast<double>(gemm.m) * static_cast<double>(gemm.n));
  return static_cast<double>(traffic.count) == elements * static_cast<double>(element.count);
}

}  // namespace ddpsim
