#include "backend/comm_hooks/quantized_bucket.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ddpsim {
namespace {

/// Scale and zero point of one rank's channel.
QuantizationScale scale_of(std::span<const float> scales, std::size_t channel) {
  return {scales[channel], scales[scales.size() / 2 + channel]};
}

}  // namespace

QuantizedBucket::QuantizedBucket(QuantizationChannels channels, std::size_t elements)
    : channels_(channels),
      elements_(elements),
      scales_(2 * static_cast<std::size_t>(channels.count)),
      codes_(static_cast<std::size_t>(channels.padded())) {}

/// Calls f(first, count, channel) for the elements of every channel. The padding behind the last
/// element is left out, since nobody reads it.
template <class Function>
void QuantizedBucket::each_channel(Function f) const {
  const auto width = static_cast<std::size_t>(channels_.width);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels_.count); ++c) {
    const std::size_t first = std::min(elements_, c * width);
    f(first, std::min(width, elements_ - first), c);
  }
}

void QuantizedBucket::observe(std::span<const float> values) {
  each_channel([&](std::size_t first, std::size_t count, std::size_t channel) {
    const QuantizationScale scale = ddpsim::observe(values.subspan(first, count));
    scales_[channel] = scale.scale;
    scales_[scales_.size() / 2 + channel] = scale.zero_point;
  });
}

void QuantizedBucket::quantize(std::span<const float> values) {
  each_channel([&](std::size_t first, std::size_t count, std::size_t channel) {
    ddpsim::quantize(values.subspan(first, count), scale_of(scales_, channel),
                     std::span(codes_).subspan(first, count));
  });
}

void QuantizedBucket::dequantize_mean(std::span<float> values, int ranks) const {
  std::ranges::fill(values, 0.0F);
  const std::size_t parts = all_codes.size() / std::max<std::size_t>(1, codes_.size());
  std::vector<float> scales(scales_.size());
  const std::size_t scale_bytes = scales.size() * sizeof(float);
  for (std::size_t r = 0; r < parts; ++r) {
    assert((r + 1) * scale_bytes <= all_scales.size());
    std::memcpy(scales.data(), all_scales.data() + r * scale_bytes, scale_bytes);
    const auto* codes = reinterpret_cast<const std::uint8_t*>(all_codes.data()) + r * codes_.size();
    each_channel([&](std::size_t first, std::size_t count, std::size_t channel) {
      add_dequantized({codes + first, count}, scale_of(scales, channel),
                      values.subspan(first, count));
    });
  }
  for (float& value : values) value /= static_cast<float>(ranks);
}

}  // namespace ddpsim
