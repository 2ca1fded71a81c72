#pragma once

#include <cstdint>
#include <span>

namespace ddpsim {

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
