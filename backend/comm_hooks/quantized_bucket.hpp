#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/comm_hooks/quantization.hpp"

namespace ddpsim {

/// A bucket in 8 bit on the host: this rank's scales and codes, and room for those of all ranks.
class QuantizedBucket {
 public:
  QuantizedBucket(QuantizationChannels channels, std::size_t elements);

  /// This rank's scales from its values.
  void observe(std::span<const float> values);
  /// This rank's codes, by its scales.
  void quantize(std::span<const float> values);
  /// values = mean over `ranks` of what all_scales and all_codes say.
  void dequantize_mean(std::span<float> values, int ranks) const;

  /// The scales of all channels, then their zero points.
  std::span<std::byte> scales() { return std::as_writable_bytes(std::span(scales_)); }
  std::span<std::byte> codes() { return std::as_writable_bytes(std::span(codes_)); }

  std::vector<std::byte> all_scales, all_codes;  ///< everyone's, by rank; others fill them

 private:
  template <class Function>
  void each_channel(Function f) const;

  QuantizationChannels channels_;
  std::size_t elements_;
  std::vector<float> scales_;
  std::vector<std::uint8_t> codes_;
};

}  // namespace ddpsim
