#pragma once

#include "model/program/job.hpp"

namespace ddpsim::program {

/// The step on a device whose streams share one queue (CUDA_DEVICE_MAX_CONNECTIONS=1): tasks begin
/// in the order in which the host issues them, whichever streams they stand on. What one of them
/// waits for, all that are issued behind it wait for: tasks of other streams, the task before it in
/// its stream, and, of a collective, the one before it in its communicator.
///
/// So a gather that is issued ahead holds up the kernels behind it until the collective before it
/// has ended, though its own bytes pass beside them. Streams of several lanes, and the host's, stay
/// as they are.
Job in_one_queue(const Job& job);

}  // namespace ddpsim::program
