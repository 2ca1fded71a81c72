#pragma once

#include "model/cluster/cluster.hpp"

namespace ddpsim {

/// What the port of one GPU carries, as a share of the rate on the bus that the table of the link
/// inside a node comes to (its `bandwidth`). Rings send over each port what nccl-tests counts on
/// the bus; where NVLink's switch adds up (NVLS), the bus counts more than the ports carry, and
/// which of the two was measured the table does not say. So a table that is no quicker than rings
/// over all of the GPUs' NVLinks is of rings, by the law; one that is quicker than those and no
/// quicker than NVLS has ports as quick as theirs; and beyond that ports grow with it.
/// Without NVLS 1.
double port_share_of_bus(const Cluster& cluster);

/// The most that a table of all-reduces of so many ranks reaches on the bus, as nccl-tests counts.
Bandwidth reached_on_bus(const AllReduceTable& table, int ranks);

/// Is a rate that stands beside a table what the table reaches on the bus, within a fifth?
bool is_about(Bandwidth rate, Bandwidth reached);

/// Is the bandwidth of the link inside a node the rate on the bus that its table reaches, as
/// `ddpsim import nccl-tests` writes it, and not a line rate? Known where NVLS may be.
bool rate_is_of_table(const Cluster& cluster);

}  // namespace ddpsim
