#pragma once

#include <cstddef>
#include <cstdint>

namespace ddpsim {

inline constexpr std::int32_t nobody = -1;  ///< an index that points nowhere

/// A 32-bit index, as jobs store it, for a standard container.
constexpr std::size_t at(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

/// The place of an enumerator in a table.
template <class Enumerator>
constexpr std::size_t index_of(Enumerator value) {
  return static_cast<std::size_t>(value);
}

}  // namespace ddpsim
