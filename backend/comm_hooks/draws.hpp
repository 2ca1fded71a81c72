#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>

#include "backend/comm_hooks/torch_random.hpp"
#include "model/program/job.hpp"

namespace ddpsim {

/// The random numbers of jobs' Draws, the same on all ranks.
class Draws {
 public:
  /// As a Draw for that buffer does it; none are wanted: a seed is taken all the same. Threads may
  /// call it at a time.
  void draw(const program::Job& job, program::BufferId buffer, std::span<float> numbers,
            bool fresh);
  /// All states begin anew.
  void forget() { seeds_.clear(); }

 private:
  std::mutex mutex_;
  std::map<std::string, TorchSeeds> seeds_;           ///< by Job::state
  std::map<program::BufferId, TorchRandom> randoms_;  ///< of the job under way
};

}  // namespace ddpsim
