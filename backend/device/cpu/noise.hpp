#pragma once

#include <cstdint>
#include <span>

namespace ddpsim {

/// The row of random numbers for a rank and a micro-batch.
std::uint64_t noise_stream(std::uint64_t seed, int rank, int micro_batch);

/// Adds normal numbers, a function of (stream, element) alone.
void add_noise(std::span<float> values, double deviation, std::uint64_t stream);

}  // namespace ddpsim
