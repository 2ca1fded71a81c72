#include "backend/comm_hooks/quantization.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace ddpsim {
namespace {

/// To the nearest whole number, ties to even, of magnitudes below 2^22 (std::nearbyint is a call
/// for every element where the CPU may be an old one).
float round_to_even(float value) {
  constexpr float large = 0x1.8p23F;
  return (value + large) - large;
}

}  // namespace

QuantizationChannels quantization_channels(std::int64_t channel, std::int64_t elements) {
  if (channel == 0) return {elements, 1};
  return {channel, elements / channel + 1};
}

QuantizationScale observe(std::span<const float> values) {
  float least = 0, most = 0;
  for (const float value : values) {
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  QuantizationScale scale;
  scale.scale = std::max((most - least) / 255.0F, std::numeric_limits<float>::epsilon());
  scale.zero_point = std::clamp(-round_to_even(least / scale.scale), 0.0F, 255.0F);
  return scale;
}

void quantize(std::span<const float> values, QuantizationScale scale,
              std::span<std::uint8_t> codes) {
  assert(values.size() == codes.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float code = round_to_even(values[i] / scale.scale) + scale.zero_point;
    const float bounded = code > 0.0F ? code : 0.0F;
    codes[i] = static_cast<std::uint8_t>(bounded < 255.0F ? bounded : 255.0F);
  }
}

void add_dequantized(std::span<const std::uint8_t> codes, QuantizationScale scale,
                     std::span<float> sum) {
  assert(codes.size() == sum.size());
  for (std::size_t i = 0; i < codes.size(); ++i)
    sum[i] += scale.scale * (static_cast<float>(codes[i]) - scale.zero_point);
}

}  // namespace ddpsim
