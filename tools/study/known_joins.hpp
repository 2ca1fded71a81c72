#pragma once

#include "model/cluster/cluster.hpp"

namespace ddpsim {

/// Is such a device known to be joined inside a node by such a link? NVLink and PCIe are those of
/// the device's generation: a link of the catalogue counts as it is there, whatever rate a scenario
/// gives it, and one of no name may be slower. Networks join every device; of a link without a kind
/// nothing is known against it.
bool is_known_to_join(const Link& link, const Device& device);

/// Does a link that is given without a place join nodes? A network does. A measured table is of
/// ranks as they were, which are taken as those of one node unless it says that they were on
/// several.
bool joins_nodes(const Link& link);

}  // namespace ddpsim
