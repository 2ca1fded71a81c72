#pragma once

#include <cstdint>

namespace ddpsim {

/// The collectives that a training step may hold.
enum class CollectiveOperation : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast };

}  // namespace ddpsim
