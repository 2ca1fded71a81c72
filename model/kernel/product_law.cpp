// Matrix products.
//
// A kernel computes its result in tiles. Each multiprocessor works on one tile at a time, so that
// tiles come in waves; a tile takes, for each step along k, the longer of its arithmetic and of its
// operands' way from the second-level cache, and once a prologue and an epilogue. Of a result with
// few tiles the sum along k is cut into parts, which a second kernel or atomic additions bring
// together. The library is taken to choose the best tile and number of parts. In fp32 it chooses
// among few: products of six devices (tests/data/operations), as those of the H200, take what the
// best of three tiles and at most two parts takes.
//
//     t = t0 + max(waves x (k / parts x max(2 rows columns / R, (rows + columns) w / B) + c),
//                  bytes / M) + (parts > 1: 1.5 us + 8 parts m n bytes / 6.3 TB/s)
//
// R is the rate of one multiprocessor, B what one takes of operands, w the bytes of an element, c
// prologue and epilogue, M the memory's rate.
//
// Products of 32-bit numbers on Hopper's tensor cores want operands along k. The gradient of an
// input has one operand that lies otherwise, that of a weight two; the kernel turns them itself.
//
// Constants: 396 products on one H200 (tests/data/h200/operations.csv.gz), 2.7 us of events taken
// off each row.
#include "model/kernel/product_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "model/kernel/kernel_law.hpp"
#include "model/kernel/machine.hpp"

namespace ddpsim {
namespace {

struct Tile {
  double rows, columns;
};
constexpr std::array<Tile, 9> tiles_of_16_bits{{{256, 128},
                                                {128, 256},
                                                {192, 192},
                                                {128, 128},
                                                {64, 128},
                                                {128, 64},
                                                {64, 256},
                                                {256, 64},
                                                {64, 64}}};
constexpr std::array<Tile, 8> tiles_of_tf32{
    {{256, 128}, {128, 256}, {128, 128}, {64, 128}, {128, 64}, {64, 256}, {256, 64}, {64, 64}}};
constexpr std::array<Tile, 3> tiles_of_fp32{{{128, 128}, {128, 64}, {64, 128}}};
constexpr std::array<Tile, 7> tiles_of_narrow_fp32{
    {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {256, 64}, {64, 32}, {32, 128}}};
constexpr std::int64_t narrow_result = 64;  ///< rows or columns that smaller tiles are taken for

constexpr double shortest_part = 256;  ///< of k
/// Operands are read from, and results written to, memory at this rate, TB/s.
constexpr double memory_rate = 4.2;
constexpr double parts_start = 1.5e-6, parts_rate = 6.3;  ///< seconds, TB/s

template <std::size_t Count>
double best_of(const std::array<Tile, Count>& tiles, const Gemm& gemm, double bytes,
               const ProductRates& rates, const Machine& machine) {
  const double sms = machine.multiprocessors;
  const double m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n),
               k = static_cast<double>(gemm.k), batch = static_cast<double>(gemm.batch);
  const double rate = rates.rate / sms;
  const double memory = seconds_of(bytes, rates.memory_rate, machine);
  double best = -1;
  for (const Tile& tile : tiles) {
    const double count = std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * batch;
    const double step = std::max(2 * tile.rows * tile.columns / rate,
                                 (tile.rows + tile.columns) * rates.element / rates.operand_rate);
    // A product of very few tiles may have as many parts as fill the device.
    const double most = std::max<double>(rates.most_parts, sms / count);
    for (double parts = 1; parts <= most && k / parts >= (parts > 1 ? shortest_part : 1);
         parts *= 2) {
      double time =
          std::max(std::ceil(count * parts / sms) * (k / parts * step + rates.per_tile), memory);
      if (parts > 1)
        time += parts_start + seconds_of(8 * parts * m * n * batch, parts_rate, machine);
      if (best < 0 || time < best) best = time;
    }
  }
  return best;
}

}  // namespace

double tiled_seconds(const Gemm& gemm, DType type, double bytes, const ProductRates& rates,
                     const Machine& machine) {
  if (type == DType::fp32 && std::min(gemm.m, gemm.n) > narrow_result)
    return best_of(tiles_of_fp32, gemm, bytes, rates, machine);
  if (type == DType::fp32) return best_of(tiles_of_narrow_fp32, gemm, bytes, rates, machine);
  if (type == DType::tf32) return best_of(tiles_of_tf32, gemm, bytes, rates, machine);
  return best_of(tiles_of_16_bits, gemm, bytes, rates, machine);
}

double rate_of_products(DType type, const Machine& machine) {
  const double rate = machine.rate_of(type);
  if (rate <= 0)
    throw std::invalid_argument(fmt::format("the device does not multiply {}", name_of(type)));
  return rate;
}

namespace {

/// What unaligned rows leave of the rate. Tensor cores are fed 16 bytes at a time. Hopper's kernels
/// then give way to those of the generation before (an H200's batched product of rows of 197
/// numbers in bf16 takes three times as long as the law, in TF32 1.25 times). Earlier devices lose
/// less. Their 0.8 is an assumption, not a measurement: for GPT-2 of 124 M in bf16 on an A100,
/// whose vocabulary of 50257 it slows, rounding up to 50304 was reported to save 3 % of a step (the
/// syllabus of the course "Let's reproduce GPT-2 (124M)").
double alignment_factor(const Gemm& gemm, DType type, const Machine& machine) {
  if (type == DType::fp32) return 1;
  const std::int64_t together = 16 / size_of(type).count;
  const auto aligned = [&](std::int64_t side) { return side % together == 0 || side == 1; };
  if (aligned(gemm.m) && aligned(gemm.n) && aligned(gemm.k)) return 1;
  if (type == DType::tf32) return 0.8;
  return machine.has_warp_group_products() ? 0.35 : 0.8;
}

}  // namespace

namespace {

/// The start was measured on products of 512 rows and more. Of fewer rows and columns than the
/// smallest tile has, as in the steps of recurrent layers, a kernel has less to set up: launches
/// of an LSTM of batch 10 take a GPU no more than 3 to 5 us each, gaps between them included
/// (tests/experiments/forward_passes.py).
double share_of_start(const Gemm& gemm) {
  constexpr double smallest_tile = 64;
  return std::min(1.0, static_cast<double>(std::min(gemm.m, gemm.n)) / smallest_tile);
}

}  // namespace

KernelTime product_time(const Product& product, DType type, Bytes traffic, const Machine& machine) {
  ProductRates rates;
  double start = 0;
  rates.memory_rate = memory_rate;
  rates.rate = rate_of_products(type, machine);
  switch (type) {
    case DType::bf16:
    case DType::fp16:
      rates.operand_rate = 726e9;
      rates.per_tile = 0.52e-6;
      start = 2.7e-6;
      break;
    case DType::tf32:
      rates.operand_rate = 658e9;
      rates.per_tile = 0.92e-6;
      start = 7.9e-6;
      break;
    case DType::fp32:
    case DType::fp64:  // these have no rate, and are refused above
    case DType::complex64:
    case DType::complex128:
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      rates.operand_rate = 124e9;
      rates.per_tile = 1.32e-6;
      start = 12.4e-6;
      break;
  }
  rates.operand_rate *= machine.clock;
  rates.per_tile /= machine.clock;
  rates.element = static_cast<double>(size_of(type).count);
  rates.most_parts = type == DType::fp32 ? 2 : 8;
  if (type == DType::tf32 && machine.has_warp_group_products())
    rates.rate *= product.along_k == 2 ? 1 : product.along_k == 1 ? 0.90 : 0.56;
  rates.rate *= alignment_factor(product.gemm, type, machine);
  const double bytes = static_cast<double>(traffic.count);
  double seconds = tiled_seconds(product.gemm, type, bytes, rates, machine);
  const double memory = seconds_of(bytes, memory_rate, machine);
  const float fraction = static_cast<float>(std::min(1.0, memory / std::max(seconds, 1e-12)));
  // In a step the clock is higher than in a loop of one product, which heats the device.
  if (type != DType::fp32) seconds *= machine.constants.product_of_a_step;
  KernelTime time;
  time.busy = from_seconds(seconds + start * share_of_start(product.gemm) / machine.clock);
  time.memory_fraction = fraction;
  // Segments of k meet in a result that was set to zero before.
  if (type == DType::tf32 && machine.has_warp_group_products()) {
    time.launches = 2;
    time.busy += from_seconds(0.8e-6);
  }
  return time;
}

}  // namespace ddpsim
