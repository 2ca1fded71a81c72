#pragma once

#include <cstdint>
#include <vector>

#include "backend/execute/memory.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// `count` numbers in [-1, 1), as fp32: the same for the same seed, and of more of them the first
/// are the same.
std::vector<float> random_values(std::int64_t count, std::uint64_t seed);

/// What buffers hold before the first job that has them, the same on all ranks. Parameters follow
/// one another in one row of random numbers, by their indices; other random numbers are drawn.
class StartValues {
 public:
  StartValues(const program::Job& job, Drawing& drawing);

  /// Fills the memory of a buffer of the job as its start says.
  void put(program::BufferId id, const Piece& piece);

 private:
  struct Parameter {
    std::int32_t index = 0;
    std::int64_t begin = 0;  ///< its first number in the row
  };
  const program::Job& job_;
  Drawing& drawing_;
  std::vector<Parameter> parameters_;  ///< ascending
  std::int64_t all_ = 0;
  std::vector<float> row_;  ///< of all parameters, once one is needed
};

}  // namespace ddpsim::execute
