// What a GPU runs for the eager kernels and the products of a recipe, call by call, by the rules
// that descriptions of PyTorch models follow (python/ddpsim/describe: memory.py, products.py). Each
// rule has its source there.

#include "model/workload/eager_kernels.hpp"

#include <algorithm>
#include <cmath>

namespace ddpsim {
namespace {

constexpr std::int64_t rows_of_blocks = 4096, elements_of_blocks = 131'072;

/// Sums of so many elements count their blocks in memory that is cleared before.
bool counts_blocks(const MemoryPattern& pattern) {
  return (pattern.of == PatternKind::sum_of_rows && pattern.rows >= rows_of_blocks) ||
         (pattern.of == PatternKind::sum && pattern.columns >= elements_of_blocks);
}

std::int64_t tiles(const Gemm& gemm) {
  return (gemm.m + 127) / 128 * ((gemm.n + 127) / 128);
}

/// Into how many parts cuBLAS cuts the sum of a product in fp32 with few tiles.
std::int64_t parts_of_sum(const Gemm& gemm) {
  constexpr std::int64_t parts_below = 152, multiprocessors = 108, most = 5, shortest = 200;
  if (gemm.batch > 1 || tiles(gemm) >= parts_below) return 1;
  const std::int64_t filling = std::max<std::int64_t>(2, multiprocessors / tiles(gemm));
  return std::max<std::int64_t>(1, std::min({most, gemm.k / shortest, filling}));
}

/// Do blocks of Hopper's kernels fetch their tiles by a counter?
bool counts_tiles(const Gemm& gemm) {
  constexpr double counted = 1000, tile = 128 * 256;
  return std::ceil(static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
                   static_cast<double>(gemm.batch) / tile) >= counted;
}

}  // namespace

void CallParts::add(const DeviceKernel& kernel, Call call, const Least& least) {
  KernelPart part{kernel, {}, least.multiprocessors, least.capability};
  if (call != Call::follows && call != Call::clears) {
    const CallTime time = call_time(call, backward_, kernel.type);
    part.host = time.time;
    held_ = time.launches;
  }
  if (call != Call::clears) {
    const auto* pattern = std::get_if<MemoryPattern>(&kernel.shape);
    const bool sorts = pattern != nullptr && pattern->of == PatternKind::embedding_sum;
    part.host +=
        std::max(0, kernel.launches - held_) * (sorts ? launch_of_sort : launch_within_call);
    held_ = std::max(0, held_ - kernel.launches);
  }
  parts_.push_back(part);
}

void CallParts::add_clearing(const Least& least, int launches) {
  DeviceKernel memset;
  memset.shape = MemoryPattern{.of = PatternKind::fill};
  memset.traffic = Bytes{4 * launches};
  memset.launches = launches;
  add(memset, Call::clears, least);
}

std::vector<KernelPart> parts_of(const std::vector<EagerKernels>& runs, Pass pass, DType dtype) {
  CallParts parts(pass);
  for (const EagerKernels& run : runs) {
    const DType type = run.type.value_or(dtype);
    const double bytes =
        static_cast<double>(run.elements) * static_cast<double>(size_of(type).count);
    for (const EagerKernel& each : run.passes) {
      if (!each.on_gpu) continue;
      DeviceKernel kernel;
      kernel.shape = each.pattern;
      kernel.type = type;
      kernel.traffic = Bytes{std::llround(each.passes * bytes)};
      kernel.launches = each.launches;
      parts.add(kernel, each.call);
      if (counts_blocks(each.pattern)) parts.add_clearing();
    }
  }
  return std::move(parts).take();
}

std::vector<KernelPart> parts_of(const Gemm& gemm, DType type, Bytes traffic,
                                 const ProductCall& product, Pass pass) {
  CallParts parts(pass);
  DeviceKernel kernel;
  kernel.shape = Product{gemm, product.along_k};
  kernel.type = type;
  kernel.traffic = traffic;
  parts.add(kernel, product.call);
  if (product.batched || type == DType::tf32) return std::move(parts).take();
  if (type != DType::fp32) {
    if (counts_tiles(gemm)) parts.add_clearing(CallParts::hopper);
    return std::move(parts).take();
  }
  const std::int64_t cut = parts_of_sum(gemm);
  if (cut > 1) {
    DeviceKernel sum;
    sum.shape = MemoryPattern{};
    sum.traffic = Bytes{8 * cut * gemm.m * gemm.n};
    parts.add(sum, Call::follows, {.multiprocessors = static_cast<int>(2 * tiles(gemm) + 1)});
  } else if (constexpr std::int64_t long_sum = 1024; product.along_k == 0 && gemm.k >= long_sum) {
    parts.add_clearing();
  }
  return std::move(parts).take();
}

}  // namespace ddpsim
