#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "backend/job/communicator.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// The gradients of a workload of which only some rows are not zero, on one rank: which rows those
/// are, and how ranks add theirs up. They lie in memory like any other; what is sent is sparse.
///
/// As each rank has its own inputs, it has its own rows, the same in every step.
class SparseGradients {
 public:
  /// Throws as check_sparse_rows does.
  SparseGradients(const Workload& workload, int rank);

  bool has(std::int32_t parameter) const { return gradients_.count(parameter) > 0; }
  /// Backward's result: half of `values` in this rank's rows, zero elsewhere.
  void fill(std::int32_t parameter, std::span<float> gradient, std::span<const float> values);
  void scale(std::int32_t parameter, std::span<float> gradient, float factor) const;
  /// What a rank hands to the collective of this message: bytes.
  std::size_t payload(std::int32_t parameter, Message message) const;
  /// Runs one of three all-gathers; after that of values `gradient` is the sum over ranks. Throws
  /// DeviceError if a rank sends what cannot be a part of this gradient.
  void gather(std::int32_t parameter, Message message, std::span<float> gradient,
              Communicator& communicator, std::uint32_t tag);

 private:
  struct Gradient {
    std::int64_t height = 0, width = 0;
    std::vector<std::int64_t> rows;      ///< this rank's, ascending
    std::vector<std::int64_t> all_rows;  ///< everyone's, by rank
    std::vector<float> mine, all;        ///< values of these rows
    std::span<float> row(std::span<float> gradient, std::int64_t index) const {
      return gradient.subspan(static_cast<std::size_t>(index * width),
                              static_cast<std::size_t>(width));
    }
  };

  void gather_shape(Gradient& gradient, Communicator& communicator, std::uint32_t tag) const;
  void gather_rows(Gradient& gradient, Communicator& communicator, std::uint32_t tag) const;
  void gather_values(Gradient& gradient, std::span<float> values, Communicator& communicator,
                     std::uint32_t tag) const;

  std::map<std::int32_t, Gradient> gradients_;  ///< by parameter
};

/// Throws std::invalid_argument if a gradient would send more rows than there are.
void check_sparse_rows(const Workload& workload);

}  // namespace ddpsim
