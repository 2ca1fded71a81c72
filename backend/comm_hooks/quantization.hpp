#pragma once

#include <cstdint>
#include <span>

namespace ddpsim {

/// How a bucket's elements are parted for quantisation: into channels of `width` elements, the last
/// of them filled up with zeros.
struct QuantizationChannels {
  std::int64_t width = 0, count = 0;
  std::int64_t padded() const { return width * count; }
};
/// One channel of all elements (`channel` 0), or channels of so many (one more than fit, whatever
/// the number of elements, as torch pads).
QuantizationChannels quantization_channels(std::int64_t channel, std::int64_t elements);

/// A value x stands as the byte clamp(round(x / scale) + zero_point, 0, 255).
struct QuantizationScale {
  float scale = 1, zero_point = 0;
};

/// From the smallest and largest value, and zero: (max - min) / 255, but at least fp32's epsilon
/// (below a range of 3e-5 codes grow coarse); the zero point rounded, to even, and clamped.
/// Source: torch/ao/quantization/observer.py MinMaxObserver, _calculate_qparams (quint8, affine).
QuantizationScale observe(std::span<const float> values);

/// Both spans have the same length. NaN gives 0. Source: quantization_hooks.py.
void quantize(std::span<const float> values, QuantizationScale scale,
              std::span<std::uint8_t> codes);
/// sum += scale (code - zero_point)
void add_dequantized(std::span<const std::uint8_t> codes, QuantizationScale scale,
                     std::span<float> sum);

}  // namespace ddpsim
