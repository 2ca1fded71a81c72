#pragma once

#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

/// How many bytes a rank sends through its port for each byte of payload, as nccl-tests count its
/// bus bandwidth.
double port_share(Operation operation, int ranks);

/// How many ranks take part in a collective of a job.
int ranks_of(const program::Job& job, const Work& work);

/// What a gather or a reduce-scatter sends through a rank's port: (W - 1) / W of the whole.
Bytes port_bytes_of_parts(const Work& work, int ranks);

/// What all collectives of a rank send through its port, but those of the network itself.
Bytes port_bytes(const RankOfJob& rank);

}  // namespace ddpsim
