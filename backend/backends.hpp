#pragma once

#include <string>
#include <vector>

namespace ddpsim {

/// A way to run a schedule for real, and whether this build can.
struct BackendStatus {
  std::string name;     ///< "gloo", "nccl"
  std::string runs_on;  ///< the hardware, for people
  std::string missing;  ///< what to install, or that it is not built yet; empty: ready
};

std::vector<BackendStatus> backends();

}  // namespace ddpsim
