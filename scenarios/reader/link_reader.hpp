#pragma once

#include "model/cluster/cluster.hpp"
#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

template <typename T>
class Map;

/// The keys of a link, which are those of a link profile.
const Map<Link>& link_map();

/// A link by its catalogue name, from a file (a link profile among them), or written out. Throws
/// InputError.
Link read_link(const Yaml& given);

}  // namespace ddpsim
