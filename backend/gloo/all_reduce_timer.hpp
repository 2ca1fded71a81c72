#pragma once

#include <span>
#include <vector>

#include "backend/link/gloo/connection.hpp"

namespace ddpsim {

/// Times all-reduces of values that are nobody's gradients.
class AllReduceTimer {
 public:
  explicit AllReduceTimer(Connection& connection) : connection_(connection) {}

  /// See Backend::time_all_reduces.
  std::vector<Duration> time(Bytes size, int count, bool waiting);

  /// Values of `size` bytes, at least one value; they stay until the next call.
  std::span<float> values(Bytes size);

 private:
  std::span<float> next_piece(Bytes size);

  Connection& connection_;
  std::vector<float> store_;
  std::size_t next_piece_ = 0;
};

}  // namespace ddpsim
