#pragma once

#include <cstdint>

#include "model/base/dtype.hpp"
#include "model/base/quantity.hpp"

namespace ddpsim {

/// What kind of call of PyTorch launches a kernel, as far as the host's time depends on it.
enum class Call : std::uint8_t {
  follows,      ///< none of its own: the call before launches it as well
  clears,       ///< likewise, a memset, whose launch is in the call's time
  elementwise,  ///< whatever is no other kind: reductions and copies too
  again,        ///< backward: another call of the same node of autograd's graph, or of its engine
  cast,
  gelu,
  layer_norm,
  softmax,
  batch_norm,
  convolution,
  attention,
  product,  ///< of matrices, without a bias
  linear,   ///< of matrices, with a bias; backward also the sum that is the bias's gradient
};

/// What a call takes the reference host in a warm loop, and how many launches that holds.
struct CallTime {
  Duration time{};
  int launches = 1;
};

/// `type`: the format of what it multiplies, where it multiplies. Of `follows` and `clears` zero.
///
/// Source: PyTorch 2.11 on the host of an H200 (tests/data/h200/operations.csv.gz, rows of kind
/// `host`), by the rules of python/ddpsim/describe/host.py, which tells them in full.
CallTime call_time(Call call, bool backward, DType type);

/// From the same source: a view of a tensor; the Python of a module's call; the node that hands a
/// parameter its gradient; a launch beyond those that a call's time holds, and one of a library
/// that sorts.
inline constexpr Duration view_time = std::chrono::nanoseconds{1940};
inline constexpr Duration module_time = std::chrono::microseconds{3};
inline constexpr Duration accumulate_time = std::chrono::microseconds{3};
inline constexpr Duration launch_within_call = std::chrono::microseconds{5};
inline constexpr Duration launch_of_sort = std::chrono::microseconds{8};

}  // namespace ddpsim
