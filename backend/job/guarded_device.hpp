#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <gloo/transport/device.h>

#include "backend/job/door.hpp"

namespace ddpsim {

/// Gloo's device for TCP, whose pairs of ranks connect through `door`: Gloo sees no socket whose
/// other end has not shown that it is a rank of this job. What goes wrong on Gloo's own thread ends
/// the pair, with its reason, and not the process. Every pair waits for its peer until `until`, and
/// the door must be there so long; once all pairs are connected it may be shut. `moved` counts
/// whenever bytes have come or gone. To close a pair ends every call that waits for it.
///
/// Gloo makes a listening socket for each pair on its own and nobody is to use it: it is on a
/// loopback address that nobody is told, and is closed before the constructor of the pair returns.
/// Throws what Gloo throws.
/// Source: Gloo 5b14351, transport/tcp: device.h, context.h, pair.h, whose functions are virtual.
std::shared_ptr<gloo::transport::Device> guarded_device(
    Door& door, Deadline until, std::shared_ptr<std::atomic<std::uint64_t>> moved);

}  // namespace ddpsim
