#pragma once

#include <memory>

#include "backend/device/cuda/gpu.hpp"

namespace ddpsim {

/// A fake GPU of a rank that is a process; its collectives go over sockets (process_gpu.cpp).
std::unique_ptr<Gpu> make_process_gpu();

}  // namespace ddpsim
