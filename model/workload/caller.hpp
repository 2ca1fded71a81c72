#pragma once

#include <cstdint>

namespace ddpsim {

/// Who enqueues a kernel: it decides what the host pays besides the bare launch
/// (model/cost/kernel_cost.hpp).
enum class Caller : std::uint8_t {
  forward_module,  ///< Python modules of the forward pass
  autograd,        ///< the backward pass, driven from C++
  python_loop,     ///< Python without autograd
  library,         ///< C++ without any of these
};

}  // namespace ddpsim
