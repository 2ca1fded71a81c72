#pragma once

#include <cstdint>
#include <string>

#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

struct MapDescription;

/// How far from the scenario itself a key may stand for its place to be told.
enum class Depth : std::uint8_t { shallow, any };

/// Where `name`, which is no key of `here`, belongs in a scenario: "bucket_cap is a key of
/// training: write training: {bucket_cap: 25 MiB}". Of several places the ones nearest to the
/// scenario itself count; `shallow` looks at its own keys and those of its mappings alone. "" where
/// `here` is no mapping of scenarios, and where none of these, or more than two, has such a key.
std::string told_misplaced(const std::string& name, const Yaml& value, const MapDescription& here,
                           Depth depth);

/// Which key of a scenario's mappings takes `name`, which is no key of `here`, as its value:
/// "overlap is a value of training.strategy: write training: {strategy: overlap}". "" as above.
std::string told_as_value(const std::string& name, const Yaml& value, const MapDescription& here);

/// Is `name`, which is no key of `here`, a key of one of the mappings right below?
bool belongs_below(const std::string& name, const MapDescription& here);

}  // namespace ddpsim
