#pragma once

#include <optional>
#include <string>

#include "scenarios/reader/format/format.hpp"
#include "tests/golden/draw.hpp"

namespace ddpsim::golden {

/// What drawing needs to know of a key beside its description, so that most scenarios are accepted
/// and quick to predict. A key without a hint is drawn by its description alone.
struct Hint {
  int percent;    ///< in how many of a hundred mappings the key appears, unless it is required
  Words words{};  ///< values to choose from in place of what the type allows; empty: the type
};

/// The hint of a key; none for most.
std::optional<Hint> hint_of(const MapDescription& map, const KeyDescription& key);

}  // namespace ddpsim::golden
