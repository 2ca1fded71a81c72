#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "model/base/dtype.hpp"
#include "model/base/quantity.hpp"
#include "model/workload/attention.hpp"
#include "model/workload/gemm.hpp"

namespace ddpsim {

/// A matrix product with the layout of its operands.
struct Product {
  Gemm gemm;
  /// How many of the two operands lie along k in memory. A linear layer has 2 forward, 1 for the
  /// gradient of its input and 0 for that of its weight.
  int along_k = 2;

  bool operator==(const Product&) const = default;
};

enum class ConvolutionDirection : std::uint8_t { forward, input, weight };
inline constexpr std::array all_convolution_directions{
    ConvolutionDirection::forward, ConvolutionDirection::input, ConvolutionDirection::weight};
constexpr std::string_view name_of(ConvolutionDirection direction) {
  constexpr std::array<std::string_view, 3> names{"forward", "input", "weight"};
  return names[static_cast<std::size_t>(direction)];
}

/// One of the three kernels of a convolution: its result, or the gradient of its input or weight.
struct ConvolutionShape {
  ConvolutionDirection direction = ConvolutionDirection::forward;
  std::int64_t pictures = 0;
  std::int64_t channels = 0, pixels = 0;  ///< of an input picture
  std::int64_t outputs = 0, places = 0;   ///< channels and pixels of a picture of the result
  std::int64_t window = 1;                ///< elements of the window, such as 9
  std::int64_t groups = 1;
  bool channels_last = false;

  auto operator<=>(const ConvolutionShape&) const = default;
};

/// Which of PyTorch's fused kernels computes attention.
enum class AttentionKernel : std::uint8_t {
  usual,  ///< the one PyTorch chooses by itself on the device
  flash,
  efficient,
  cudnn,
};
inline constexpr std::array all_attention_kernels{AttentionKernel::usual, AttentionKernel::flash,
                                                  AttentionKernel::efficient,
                                                  AttentionKernel::cudnn};
constexpr std::string_view name_of(AttentionKernel kernel) {
  constexpr std::array<std::string_view, 4> names{"default", "flash", "efficient", "cudnn"};
  return names[static_cast<std::size_t>(kernel)];
}

struct AttentionOperation {
  Attention shape;
  AttentionKernel implementation = AttentionKernel::usual;
  bool masked = false;  ///< by a tensor, besides a causal mask

  bool operator==(const AttentionOperation&) const = default;
};

/// What a kernel does that only moves memory, where that decides its speed.
enum class PatternKind : std::uint8_t {
  elementwise,
  widening,  ///< a cast of 16 bits to 32
  mixed,     ///< elementwise over several number formats
  gelu,
  dropout,
  strided,  ///< a copy between tensors that lie differently
  layout,   ///< cuDNN's, between channels first and last
  fill,
  gather,
  embedding_sum,
  sum,
  sum_of_rows,
  reduce,
  softmax,
  log_softmax,
  layer_norm,
  layer_norm_weights,
  batch_norm,
  batch_norm_own,
  batch_norm_statistics,
  batch_norm_transform,
  group_norm,
  max_pool,
  pool,
};
inline constexpr std::array all_pattern_kinds{PatternKind::elementwise,
                                              PatternKind::widening,
                                              PatternKind::mixed,
                                              PatternKind::gelu,
                                              PatternKind::dropout,
                                              PatternKind::strided,
                                              PatternKind::layout,
                                              PatternKind::fill,
                                              PatternKind::gather,
                                              PatternKind::embedding_sum,
                                              PatternKind::sum,
                                              PatternKind::sum_of_rows,
                                              PatternKind::reduce,
                                              PatternKind::softmax,
                                              PatternKind::log_softmax,
                                              PatternKind::layer_norm,
                                              PatternKind::layer_norm_weights,
                                              PatternKind::batch_norm,
                                              PatternKind::batch_norm_own,
                                              PatternKind::batch_norm_statistics,
                                              PatternKind::batch_norm_transform,
                                              PatternKind::group_norm,
                                              PatternKind::max_pool,
                                              PatternKind::pool};
constexpr std::string_view name_of(PatternKind kind) {
  constexpr std::array<std::string_view, all_pattern_kinds.size()> names{"elementwise",
                                                                         "widening",
                                                                         "mixed",
                                                                         "gelu",
                                                                         "dropout",
                                                                         "strided",
                                                                         "layout",
                                                                         "fill",
                                                                         "gather",
                                                                         "embedding_sum",
                                                                         "sum",
                                                                         "sum_of_rows",
                                                                         "reduce",
                                                                         "softmax",
                                                                         "log_softmax",
                                                                         "layer_norm",
                                                                         "layer_norm_weights",
                                                                         "batch_norm",
                                                                         "batch_norm_own",
                                                                         "batch_norm_statistics",
                                                                         "batch_norm_transform",
                                                                         "group_norm",
                                                                         "max_pool",
                                                                         "pool"};
  return names[static_cast<std::size_t>(kind)];
}

/// Does such a kernel reduce rows of its input and go over them again with the result, as
/// normalisations and softmax do?
constexpr bool reduces_rows(PatternKind kind) {
  switch (kind) {
    case PatternKind::reduce:
    case PatternKind::softmax:
    case PatternKind::log_softmax:
    case PatternKind::layer_norm:
    case PatternKind::layer_norm_weights:
    case PatternKind::batch_norm:
    case PatternKind::batch_norm_own:
    case PatternKind::batch_norm_statistics:
    case PatternKind::batch_norm_transform:
    case PatternKind::group_norm:
      return true;
    case PatternKind::elementwise:
    case PatternKind::widening:
    case PatternKind::mixed:
    case PatternKind::gelu:
    case PatternKind::dropout:
    case PatternKind::strided:
    case PatternKind::layout:
    case PatternKind::fill:
    case PatternKind::gather:
    case PatternKind::embedding_sum:
    case PatternKind::sum:
    case PatternKind::sum_of_rows:
    case PatternKind::max_pool:
    case PatternKind::pool:
      return false;
  }
  return false;
}

/// `rows` and `columns` by kind: tokens and width of a gather; what is kept and what is added up of
/// a reduction (of sum_of_rows: rows added up, columns kept); rows and their length of softmax and
/// layer norm; channels and elements of one (over all samples) of a batch norm; groups of all
/// samples and elements of one of a group norm; outputs and elements of the window of a pool.
struct MemoryPattern {
  PatternKind of = PatternKind::elementwise;
  bool backward = false;
  std::int64_t rows = 1, columns = 1;
  std::int64_t inner = 0;  ///< of a batch norm: pixels of one picture; 0: not said
  bool channels_last = false;

  auto operator<=>(const MemoryPattern&) const = default;
};

/// What a GPU does in one kernel, or in a run of small ones of one purpose: enough for the law of
/// its class (model/kernel).
struct DeviceKernel {
  std::variant<MemoryPattern, Product, ConvolutionShape, AttentionOperation> shape;
  DType type = DType::fp32;  ///< how it multiplies; of one that moves memory: its result's format
  Bytes traffic;             ///< read and written, at least
  int launches = 1;

  bool operator==(const DeviceKernel&) const = default;
};

/// A kernel of a GPU as part of a step.
struct KernelPart {
  DeviceKernel kernel;
  Duration host{};          ///< of its call on the reference host, in a warm loop
  int multiprocessors = 0;  ///< the fewest of a device that launches it
  int capability = 0;       ///< CUDA's compute capability, times ten: the least of such a device

  bool operator==(const KernelPart&) const = default;
};

}  // namespace ddpsim
