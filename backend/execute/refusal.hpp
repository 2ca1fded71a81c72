#pragma once

#include <string>

#include "backend/execute/device.hpp"
#include "backend/execute/link.hpp"
#include "backend/execute/streams.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// Why this device, this link and these streams cannot run the job, in one line that names the
/// first task they cannot do; empty: they can. The job has been checked (program::check).
std::string refusal(const program::Job& job, const Device& device, const Link& link,
                    const Streams& streams);

}  // namespace ddpsim::execute
