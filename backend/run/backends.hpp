#pragma once

#include <string>
#include <vector>

namespace ddpsim {

/// A way to run a schedule for real, and whether this build can.
struct BackendStatus {
  std::string name;     ///< "gloo", "nccl"
  std::string runs_on;  ///< the hardware, for people
  /// What is missing on this machine or in this build; empty: ready. May start a child process to
  /// look.
  std::string (*missing)();
};

std::vector<BackendStatus> backends();

}  // namespace ddpsim
