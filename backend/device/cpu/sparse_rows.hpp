#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "backend/execute/device.hpp"

namespace ddpsim {

/// Gradients of which only some rows are not zero, on one rank. As each rank has its own inputs, it
/// has rows of its own, the same in every step.
class SparseRows {
 public:
  explicit SparseRows(int rank) : rank_(rank) {}

  /// Half of `values`, one row behind the other, in as many rows as `numbers` has room for; zero
  /// elsewhere. `numbers` become those of the rows, ascending. `seed` tells gradients apart.
  void fill(const execute::Piece& gradient, std::int64_t width, const execute::Piece& numbers,
            std::uint64_t seed, const float* values);

  /// What TakeRows and AddRows do. Throws DeviceError for the number of a row that there is not.
  static void take(const execute::Doing& doing, const program::TakeRows& take);
  static void add(const execute::Doing& doing, const program::AddRows& add);

 private:
  const std::vector<std::int64_t>& some_rows(std::int64_t height, std::size_t count,
                                             std::uint64_t seed);

  int rank_;
  std::mutex mutex_;
  std::map<std::tuple<std::int64_t, std::size_t, std::uint64_t>, std::vector<std::int64_t>> rows_;
};

/// Why a CPU cannot work on these rows; empty: it can. `rows`: their numbers; `some`: one behind
/// the other; `all`: of the whole gradient.
std::string refusal_of_rows(const program::Job& job, const program::Slice& rows,
                            const program::Slice& some, const program::Slice& all);

}  // namespace ddpsim
