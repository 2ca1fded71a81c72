// Every rank receives the buckets of all ranks in 8 bit, with a scale and a zero point for each
// bucket, or for each channel of 512 elements of it.

#include <algorithm>

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {
namespace {

constexpr std::int64_t channel_elements = 512;

/// `count`, but at most what an int holds: a step of more launches takes hours anyway.
int launches(std::int64_t count) {
  return static_cast<int>(std::min<std::int64_t>(count, 1 << 30));
}

/// With `channel` elements for each scale; 0: all of them. Per channel PyTorch loops in Python: a
/// few kernels for each. Source: pytorch quantization_hooks.py (rule R43).
void quantize(HookWriter& writer, std::int64_t channel) {
  const program::Slice data = writer.data();
  const std::int64_t e = size_of(writer.type()).count;
  const std::int64_t ranks = writer.call.ranks;
  // PyTorch's code always pads, even a size that the channel divides.
  const std::int64_t channels = channel == 0 ? 1 : data.count / channel + 1;
  const std::int64_t padded = channel == 0 ? data.count : channels * channel;
  const program::Slice scales = writer.buffer("scales", DType::fp32, 2 * channels);
  const program::Slice all_scales = writer.gathered("all scales", scales);
  const program::Slice codes = writer.buffer("codes", DType::fp8_e4m3, padded);
  const program::Slice all_codes = writer.gathered("all codes", codes);

  writer.kernel("find scale", Operation::quantize, Bytes{(channel == 0 ? 1 : 3) * padded * e},
                program::Observe{.scales = scales, .from = data, .channel = channel},
                channel == 0 ? 6 : 8);
  writer.synchronize();  // the scales are made on the host
  writer.all_gather("all-gather scales", scales, all_scales);
  // Divide, round, add the zero point: 2 passes each; clamp and cast.
  writer.kernel(
      "quantize", Operation::quantize, Bytes{8 * padded * e + padded * (e + 1)},
      program::Quantize{.codes = codes, .scales = scales, .from = data, .channel = channel},
      launches(3 * channels + 2));
  writer.all_gather("all-gather codes", codes, all_codes);
  // For each rank: cast, subtract, multiply, add to the sum; then divide.
  writer.kernel("dequantize", Operation::dequantize,
                Bytes{ranks * padded * (1 + e + 7 * e) + 2 * padded * e},
                program::Dequantize{.to = data,
                                    .codes = all_codes,
                                    .scales = all_scales,
                                    .channel = channel,
                                    .mean_over = writer.call.communicator(0)},
                launches(ranks * (2 * channels + 2) + 1));
}

}  // namespace

void write_quantization_pertensor(HookWriter& writer) {
  quantize(writer, 0);
}

void write_quantization_perchannel(HookWriter& writer) {
  quantize(writer, channel_elements);
}

}  // namespace ddpsim
