#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/execute/memory.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// `count` numbers in [-1, 1), as fp32: the same for the same seed, and of more of them the first
/// are the same.
std::vector<float> random_values(std::int64_t count, std::uint64_t seed);

/// The seed of a kernel's operands in a micro-batch.
constexpr std::uint32_t seed_in(std::uint32_t seed, std::int16_t micro_batch) {
  return seed + 1000 * static_cast<std::uint32_t>(micro_batch);
}

/// Fills the memory of parameters, fp32 on the host, with what they begin with: they follow one
/// another in one row of random numbers, by their indices.
void put_start_values(const program::Job& job, std::span<const Beginning> parameters);

}  // namespace ddpsim::execute
