#include "scenarios/reader/workload/device_kernel_reader.hpp"

namespace ddpsim {
namespace {

/// What no real step comes near, and what keeps every later product inside 64 bits and a double.
constexpr std::int64_t most_extent = std::int64_t{1} << 40;
/// Limits of sizes that are multiplied with each other as whole numbers.
constexpr std::int64_t most_pictures = 1 << 20, most_pixels = 1 << 26, most_channels = 1 << 20;

Value<std::int64_t> extent() {
  return value::whole<std::int64_t>(1, most_extent);
}

}  // namespace

const Map<Product>& product_map() {
  const auto of = [](auto member) {
    return [member](auto& product) -> auto& {
      return product.gemm.*member;
    };
  };
  static const auto map =
      Map<Product>("described_gemm",
                   "A matrix product: C of m x n elements += A of m x k times B of k x n.")
          .key("m", extent(), of(&Gemm::m),
               {.meaning = "Rows of C.", .example = "4096", .required = true})
          .key("n", extent(), of(&Gemm::n),
               {.meaning = "Columns of C.", .example = "768", .required = true})
          .key("k", extent(), of(&Gemm::k),
               {.meaning = "Columns of A.", .example = "768", .required = true})
          .key("batch", extent(), of(&Gemm::batch),
               {.meaning = "How many independent products of that shape: a convolution's groups, "
                           "for example."})
          .key(
              "along_k", value::whole(0, 2), &Product::along_k,
              {.meaning = "How many of A and B lie along k in memory: of a linear layer 2 forward, "
                          "1 for its input's gradient, 0 for its weight's. Tensor cores of Hopper "
                          "multiply fp32 numbers that lie otherwise more slowly."});
  return map;
}

const Map<AttentionOperation>& attention_map() {
  const auto extent_or_none = [] { return value::whole<std::int64_t>(0, most_extent); };
  const auto of = [](auto member) {
    return [member](auto& operation) -> auto& {
      return operation.shape.*member;
    };
  };
  static const auto map =
      Map<AttentionOperation>("described_attention", "Attention of a layer in one fused kernel.")
          .key("batch", extent(), of(&Attention::batch),
               {.meaning = "Samples.", .example = "8", .required = true})
          .key("heads", extent(), of(&Attention::heads),
               {.meaning = "Heads of the queries.", .example = "12", .required = true})
          .key("queries", extent(), of(&Attention::queries),
               {.meaning = "Queries of a sample.", .example = "512", .required = true})
          .key("keys", extent(), of(&Attention::keys),
               {.meaning = "Keys of a sample.", .example = "512", .required = true})
          .key("size", extent(), of(&Attention::size),
               {.meaning = "Elements of a head's queries and keys.",
                .example = "64",
                .required = true})
          .key("value_size", extent_or_none(), of(&Attention::value_size),
               {.meaning = "Elements of a head's values, where there are others.",
                .otherwise = "as `size`",
                .example = "128"})
          .key("causal", value::boolean(), of(&Attention::causal),
               {.meaning = "Whether a query sees no key behind it. What is masked is left out when "
                           "the kernel is priced, and there alone."})
          .key("backward", value::boolean(), of(&Attention::backward),
               {.meaning = "Whether it is the gradients of queries, keys and values."})
          .key("implementation",
               value::one_of(all_attention_kernels,
                             {"the one that PyTorch chooses on the device, by `release`",
                              "FlashAttention's", "PyTorch's memory-efficient one", "cuDNN's"}),
               &AttentionOperation::implementation, {.meaning = "Which fused kernel computes it."})
          .key("masked", value::boolean(), &AttentionOperation::masked,
               {.meaning = "Whether a tensor masks scores, which flash does not take."});
  return map;
}

const Map<ConvolutionShape>& convolution_map() {
  using C = ConvolutionShape;
  static const auto map =
      Map<C>("described_convolution",
             "One of the kernels of a convolution, with all that decides how fast it is.")
          .key("direction",
               value::one_of(all_convolution_directions,
                             {"the result", "the gradient of the input", "that of the weight"}),
               &C::direction,
               {.meaning = "What it computes.", .example = "forward", .required = true})
          .key("pictures", value::whole<std::int64_t>(1, most_pictures), &C::pictures,
               {.meaning = "Pictures of the batch.", .example = "64", .required = true})
          .key("channels", value::whole<std::int64_t>(1, most_channels), &C::channels,
               {.meaning = "Channels of the input.", .example = "256", .required = true})
          .key("pixels", value::whole<std::int64_t>(1, most_pixels), &C::pixels,
               {.meaning = "Pixels of an input picture.", .example = "3136", .required = true})
          .key("outputs", value::whole<std::int64_t>(1, most_channels), &C::outputs,
               {.meaning = "Channels of the result.", .example = "512", .required = true})
          .key(
              "places", value::whole<std::int64_t>(1, most_pixels), &C::places,
              {.meaning = "Pixels of a picture of the result.", .example = "784", .required = true})
          .key("window", value::whole<std::int64_t>(1, most_pixels), &C::window,
               {.meaning = "Elements of the window: 9 where it is 3 x 3."})
          .key("groups", value::whole<std::int64_t>(1, most_channels), &C::groups,
               {.meaning = "Groups of channels that are convolved by themselves."})
          .key("channels_last", value::boolean(), &C::channels_last,
               {.meaning = "Whether the channels of a pixel lie together in memory."})
          .check([](C& shape, const YamlMap& given) {
            if (shape.groups > shape.channels || shape.groups > shape.outputs)
              given.at("groups").fail("there are no more groups than channels, and than outputs");
          });
  return map;
}

const Map<MemoryPattern>& pattern_map() {
  static const auto map =
      Map<MemoryPattern>("described_pattern",
                         "What a kernel does that only moves memory, where that decides its speed.")
          .key("of",
               value::one_of(
                   all_pattern_kinds,
                   {"an operation on each element",
                    "a cast of 16 bits to 32",
                    "an operation on each element, over several number formats",
                    "GELU",
                    "dropout",
                    "a copy between tensors of different strides",
                    "cuDNN's copy between channels first and last",
                    "a fill",
                    "rows of a table, taken by an index",
                    "the gradients of rows, summed into their table",
                    "one sum of all elements",
                    "a sum of rows, such as a bias's gradient",
                    "a sum of each row",
                    "softmax",
                    "the logarithm of a softmax",
                    "layer norm, or the gradient of its input",
                    "the gradient of a layer norm's weight and bias",
                    "cuDNN's batch norm in one kernel",
                    "the gradient of PyTorch's own batch norm with channels first, in one kernel",
                    "PyTorch's own batch norm: its statistics, or the sums of its gradient",
                    "PyTorch's own batch norm: its result, or the gradient of its input",
                    "group norm",
                    "a maximum over windows",
                    "a mean over windows"}),
               &MemoryPattern::of,
               {.meaning = "What it does.", .example = "layer_norm", .required = true})
          .key("backward", value::boolean(), &MemoryPattern::backward,
               {.meaning = "Whether it is of the backward pass."})
          .key("rows", extent(), &MemoryPattern::rows,
               {.meaning = "Rows: tokens, channels, groups of all samples, results of a pool; of a "
                           "sum of rows those that are added up."})
          .key("columns", extent(), &MemoryPattern::columns,
               {.meaning = "Elements of a row; of a channel over all samples; of a pool's window."})
          .key("inner", value::whole<std::int64_t>(0, most_extent), &MemoryPattern::inner,
               {.meaning = "Pixels of one picture, of a batch norm.",
                .otherwise = "not known",
                .example = "49"})
          .key("channels_last", value::boolean(), &MemoryPattern::channels_last,
               {.meaning = "Whether the channels of a pixel lie together in memory."});
  return map;
}

}  // namespace ddpsim
