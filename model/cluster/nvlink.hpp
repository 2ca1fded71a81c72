#pragma once

#include <utility>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// What the NVLink of GPUs of a compute capability (7.0 is 70) carries in one direction: of a GPU
/// with all its links, or of the bridge between two cards. Zero: no NVLink of that generation is
/// known. Source: the data sheets that the catalogue's links name.
constexpr Bandwidth nvlink_rate(int compute_capability) {
  constexpr std::pair<int, double> rates[] = {{70, 150e9},   {75, 50e9},  {80, 300e9},
                                              {86, 56.25e9}, {90, 450e9}, {100, 900e9}};
  for (const auto& [capability, rate] : rates)
    if (capability == compute_capability) return Bandwidth{rate};
  return {};
}

/// How many GPUs the largest NVLink domain that is sold joins: 16 V100 in a DGX-2, and since
/// Blackwell the 72 of a GB200 NVL72 rack.
constexpr int largest_nvlink_domain(int compute_capability) {
  constexpr int blackwell = 100;
  return compute_capability >= blackwell ? 72 : 16;
}

}  // namespace ddpsim
