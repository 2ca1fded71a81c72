// Kernels that only move memory: t = t0 + bytes / rate for most, and a form of its own where
// something else bounds the kernel.
//
//  * Elementwise kernels whose bytes fit the second-level cache find part of them there.
//  * A batch norm with channels first has one block of threads for each channel: with few channels
//    or long ones a block's own pace counts. The two bounds are joined smoothly,
//    t = ((n tau)^q + (passes x bytes / rate)^q)^(1/q), n the elements of a channel.
//  * Softmax over long rows, pools and norms over groups are bound by their instructions, so many
//    elements a second, or on devices with less memory bandwidth for their lanes by their bytes.
//
// Constants: one H200 (tests/data/h200), rates in TB/s of bytes read and written; those of
// step_constants.hpp from the kernels of whole steps, all others from single operations, 2.7 us of
// events taken off each row. Not measured, and assumed: the rates of copies
// between tensors that lie differently, of average pools and of sums of each row, and that the
// gradient of a group norm takes half as long again as the norm.
#include <algorithm>
#include <cmath>

#include "model/kernel/kernel_law.hpp"
#include "model/kernel/machine.hpp"

namespace ddpsim {
namespace {

constexpr double streaming = 4.23;  ///< TB/s of kernels that only stream, on the H200

/// A pattern with what its laws need.
struct Pattern {
  const MemoryPattern& shape;
  const Machine& machine;
  double bytes;
  bool narrow;  ///< 16 bits
  const StepConstants& constants = machine.constants;

  double elements() const {
    return static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  }
  double at(double start, double terabytes_per_second) const {
    return start + seconds_of(bytes, terabytes_per_second, machine);
  }
  /// Seconds for so many passes over all elements.
  double passes(double count, double terabytes_per_second) const {
    return seconds_of(count * elements() * (narrow ? 2 : 4), terabytes_per_second, machine);
  }
  /// Elements at a rate of instructions, 10^9 a second on the H200, and bytes that do not move
  /// meanwhile, if any; never sooner than all bytes move that the second-level cache does not hold.
  double counted(double start, double elements, double giga_per_second,
                 double not_meanwhile = 0) const {
    const double moved =
        bytes <= 2 * machine.cache_bytes ? 0 : seconds_of(bytes, streaming, machine);
    return start +
           std::max(elements / (giga_per_second * 1e9 * machine.lanes) + not_meanwhile, moved);
  }
};

double elementwise(const Pattern& p) {
  const double cache = p.machine.cache_bytes;
  const StepConstants& c = p.constants;
  const double warm = p.bytes <= cache ? c.warm : p.bytes <= 2 * cache ? c.half_warm : 1;
  return p.at(1.3e-6, streaming * warm);
}

/// One block of threads for each channel. `share`: of the constant, what a block takes here.
double by_channel(const Pattern& p, double passes, const BlockPerChannel& law, double share = 1) {
  const double q = law.sharpness;
  const double block =
      static_cast<double>(p.shape.columns) * share * law.block_ns * 1e-9 / p.machine.clock;
  const double memory = p.passes(passes, law.rate);
  const double longer = std::max(block, memory), shorter = std::min(block, memory);
  return 1e-6 * law.start_us + longer * std::pow(1 + std::pow(shorter / longer, q), 1 / q);
}

/// What batch norms of ResNet-50 take on a V100, over what the law below says: 5.5 and 9.5 ms a
/// step of batch 32. There each multiprocessor has half of the bandwidth that an H200's has, and
/// memory bounds what their blocks' own pace bounds here. Source: a trace, as the tests of
/// PyTorch's profiler keep its sums (github:pytorch/kineto@0ab7eadb59b4:
/// tb_plugin/test/result_check_file.txt).
double on_volta(const Pattern& p) {
  constexpr int volta = 70;
  if (p.machine.compute_capability != volta || p.narrow || p.shape.channels_last) return 1;
  return p.shape.backward ? 0.82 : 0.74;
}

/// cuDNN's, of fp32 and fp16 with channels last. A block takes 128 bytes of channels of each pixel,
/// whether the tensor has as many or not, and all blocks wait for each other between the two times
/// that they read. Both bounds are joined by their squares.
///
/// Constants: an A100 in fp16 with up to 64 channels (tests/data/operations, batch_norms); of the
/// start also small batch norms of an H200 in fp32. The H200's others, a V100's and a Turing card's
/// bear them out.
double batch_norm_last(const Pattern& p) {
  constexpr double start = 14e-6, bytes_of_block = 128;
  const double tiles =
      std::ceil(static_cast<double>(p.shape.rows) * (p.narrow ? 2 : 4) / bytes_of_block);
  const double pixel = p.shape.backward ? 84e-12 : 64e-12;  // of all multiprocessors of an H200
  const double blocks = static_cast<double>(p.shape.columns) * tiles * pixel / p.machine.lanes;
  return start / p.machine.clock +
         std::hypot(blocks, p.passes(p.shape.backward ? 5 : 3, streaming));
}

/// cuDNN's, of fp32 and fp16. A channel that fits into a block's registers and shared memory is
/// read once.
double batch_norm(const Pattern& p) {
  const StepConstants& c = p.constants;
  if (p.shape.channels_last) return batch_norm_last(p);
  const double of_channel = static_cast<double>(p.shape.columns) * (p.shape.backward ? 8 : 4);
  const bool held = of_channel <= c.batch_norm_held_bytes;
  // A block's pace in 16 bits over that in 32: an A100 and a V100 (tests/data/operations,
  // batch_norms).
  constexpr double narrow = 0.78, narrow_backward = 0.75;
  if (p.shape.backward)
    return held ? 1e-6 + p.passes(3, c.batch_norm_backward_once_rate)
                : by_channel(p, 5, c.batch_norm_backward, p.narrow ? narrow_backward : 1);
  return held ? 2e-6 + p.passes(2, c.batch_norm_once_rate)
              : by_channel(p, 3, c.batch_norm, p.narrow ? narrow : 1);
}

double batch_norm_statistics(const Pattern& p) {
  const StepConstants& c = p.constants;
  if (!p.shape.channels_last) return by_channel(p, 1, c.batch_norm_statistics);
  if (p.shape.backward) return 2e-6 + p.passes(2, c.statistics_last_backward_rate);
  constexpr std::int64_t few_channels = 48;
  return 2e-6 + p.passes(1, p.shape.rows <= few_channels ? c.statistics_last_few_rate
                                                         : c.statistics_last_rate);
}

double batch_norm_transform(const Pattern& p) {
  const StepConstants& c = p.constants;
  if (p.shape.channels_last)
    return p.shape.backward ? 2e-6 + p.passes(3, c.transform_last_backward_rate)
                            : 2e-6 + p.passes(2, c.transform_last_rate);
  // A row of threads works on one picture of one channel: small ones leave most of them idle.
  constexpr std::int64_t small_picture = 64;
  const bool small = p.shape.inner > 0 && p.shape.inner < small_picture;
  return 5e-6 +
         p.passes(2, small ? c.batch_norm_transform_small_rate : c.batch_norm_transform_rate);
}

/// How many times the bytes cross to memory: PyTorch reads a long row three times, and again from
/// memory when the rows that all multiprocessors work on, two each, no longer share the cache with
/// what is written. Source: NeuSight's softmax on V100 (6 MB) and T4 (4 MB), whose time
/// begins to grow at rows of 0.4 of the cache and has doubled at 0.87 (tests/data/operations).
double reads_again(const Pattern& p) {
  const double in_flight = 2 * p.machine.multiprocessors * 4 * static_cast<double>(p.shape.columns);
  return 1 + std::clamp((in_flight / p.machine.cache_bytes - 0.4) / (0.87 - 0.4), 0.0, 1.0);
}

double softmax(const Pattern& p) {
  if (p.shape.backward) return p.at(2e-6, p.narrow ? 3.2 : 2.9);
  constexpr std::int64_t held_in_registers = 1024;
  if (p.shape.columns <= held_in_registers)
    return p.counted(4.3e-6, p.elements(), 751, seconds_of(p.bytes, 14, p.machine));
  const double again = reads_again(p);
  const double counted = p.counted(4.3e-6, p.elements(), 329);
  return again > 1 ? std::max(counted, p.at(4.3e-6, streaming / again)) : counted;
}

/// A row that does not stay in the second-level cache until it is read again is read three times.
double log_softmax(const Pattern& p) {
  if (p.shape.backward) return p.at(2e-6, p.narrow ? 3.2 : 2.9);
  constexpr std::int64_t held_in_registers = 1024;
  if (p.shape.columns <= held_in_registers)
    return p.counted(4.3e-6, p.elements(), 751, seconds_of(p.bytes, 14, p.machine));
  if (p.narrow) return p.counted(4e-6, p.elements(), 730);
  const double in_flight = 2 * p.machine.multiprocessors * 4 * static_cast<double>(p.shape.columns);
  return p.counted(4e-6, p.elements(), in_flight <= p.machine.cache_bytes ? 311 : 261);
}

double sum_of_all(const Pattern& p) {
  constexpr double one_block = 65'536;
  if (p.elements() <= one_block) return p.counted(1.3e-6, p.elements(), 5.2);
  return p.at(6.5e-6, 3.9);
}

/// Sorts and sums of many small kernels; few indices are summed by one.
double embedding_sum(const Pattern& p, int launches) {
  const double of_row = 14e-9 * static_cast<double>(p.shape.columns) / 1024;
  return std::max(launches * 2.2e-6,
                  6e-6 + static_cast<double>(p.shape.rows) * of_row / p.machine.bandwidth);
}

double max_pool(const Pattern& p) {
  const double outputs = static_cast<double>(p.shape.rows);
  if (!p.shape.backward) return p.counted(3e-6, outputs, p.shape.channels_last ? 52 : 63.8);
  return p.counted(
      3e-6, outputs,
      p.shape.channels_last ? p.constants.max_pool_backward_last : p.constants.max_pool_backward);
}

double group_norm(const Pattern& p) {
  const double rate = p.shape.channels_last ? (p.narrow ? 89 : 79) : (p.narrow ? 233 : 201);
  return p.counted(4e-6, p.elements(), p.shape.backward ? rate * 2 / 3 : rate);
}

double layer_norm(const Pattern& p) {
  if (p.shape.backward) return p.at(2e-6, p.constants.layer_norm_backward_rate);
  return p.at(2.9e-6, 3.2) + static_cast<double>(p.shape.rows) * 0.95e-9 / p.machine.lanes;
}

double seconds_of_pattern(const Pattern& p, int launches) {
  switch (p.shape.of) {
    case PatternKind::elementwise:
      return elementwise(p);
    case PatternKind::widening:
      return p.at(1.3e-6, 2.1);
    case PatternKind::mixed:
      return p.at(1.3e-6, 2.6);
    case PatternKind::gelu:
      return p.narrow ? p.at(1.3e-6, 3.1) : elementwise(p);
    case PatternKind::dropout:
      return p.at(1.3e-6, p.narrow ? 3.0 : 3.25);
    case PatternKind::strided:
      return p.at(1.3e-6, 3.0);
    case PatternKind::layout:
      return p.at(1e-6 * p.constants.layout_start_us,
                  p.narrow ? p.constants.layout_narrow_rate : p.constants.layout_rate);
    case PatternKind::fill:
      return p.at(0.8e-6, streaming);
    case PatternKind::gather:
      return p.at(1.3e-6, 3.5);
    case PatternKind::embedding_sum:
      return embedding_sum(p, launches);
    case PatternKind::sum:
      return sum_of_all(p);
    case PatternKind::sum_of_rows:
      return p.at(5.8e-6, p.narrow ? 1.8 : 2.5);
    case PatternKind::reduce:
      return p.at(3e-6, 3.9);
    case PatternKind::softmax:
      return softmax(p);
    case PatternKind::log_softmax:
      return log_softmax(p);
    case PatternKind::layer_norm:
      return layer_norm(p);
    case PatternKind::layer_norm_weights:
      return p.at(2e-6, p.constants.layer_norm_weights_rate);
    case PatternKind::batch_norm:
      return batch_norm(p) * on_volta(p);
    case PatternKind::batch_norm_own:
      return by_channel(p, 5, p.constants.batch_norm_own);
    case PatternKind::batch_norm_statistics:
      return batch_norm_statistics(p);
    case PatternKind::batch_norm_transform:
      return batch_norm_transform(p);
    case PatternKind::group_norm:
      return group_norm(p);
    case PatternKind::max_pool:
      return max_pool(p);
    case PatternKind::pool:
      return p.at(3e-6, 2.5);
  }
  return 0;
}

}  // namespace

KernelTime pattern_time(const MemoryPattern& pattern, DType type, Bytes traffic, int launches,
                        const Machine& machine) {
  const Pattern p{pattern, machine, static_cast<double>(traffic.count),
                  size_of(type) < size_of(DType::fp32)};
  KernelTime time;
  time.launches = launches;
  const double more = (launches - 1) * floor_of(machine);
  const double alone = seconds_of_pattern(p, launches);
  time.busy = from_seconds(pattern.of == PatternKind::embedding_sum ? alone : alone + more);
  const double memory = seconds_of(p.bytes, streaming, machine);
  time.memory_fraction = static_cast<float>(std::clamp(memory / std::max(alone, 1e-12), 0.5, 1.0));
  return time;
}

}  // namespace ddpsim
