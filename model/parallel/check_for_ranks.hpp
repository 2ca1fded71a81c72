#pragma once

#include "model/parallel/training.hpp"
#include "model/program/job.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Throws std::invalid_argument, one line, for a step that can be predicted and that real ranks
/// would carry out with a wrong result: one in which no rank has inputs, or ranks without inputs
/// would be asked more than once; a delayed all-reduce beside others; sparse gradients that are
/// reduced twice or that a hook fills; means that all-reduces make, gradients that stay in the flat
/// piece, and collectives of the network's own.
void check_for_ranks(const program::Job& job, const Training& training, const Workload& workload);

}  // namespace ddpsim
