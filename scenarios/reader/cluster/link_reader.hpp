#pragma once

#include "model/cluster/cluster.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

template <typename T>
class Map;

/// The keys of a link, which are those of a link profile.
const Map<Link>& link_map();

/// Why these are no times of a link; "": they may be. More bytes take no less time, and little more
/// than as many messages of fewer bytes. Noise bends that a little, and a protocol's change by more
/// for a size or two; a table that as a whole falls, or in which a few more bytes take several
/// times as long, holds no link's times. `table`: by size, growing, with a point at least.
std::string why_no_link(const AllReduceTable& table);

/// A link by its catalogue name, from a file (a link profile among them), or written out. Throws
/// InputError.
Link read_link(const Yaml& given);

/// A link in the place of `had`, that of a ready cluster's node. A measured table that says no kind
/// was taken over the wires that are there: it keeps their kind, their switch, and what NCCL counts
/// for them. Its own bandwidth is what all-reduces reached, so large messages reach all of it.
Link read_link_in_place(const Yaml& given, const Link& had);

}  // namespace ddpsim
