#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backend/job/rendezvous.hpp"
#include "backend/plugin/plugins.hpp"

namespace ddpsim {

/// A rank on a CPU: kernels on the calling thread, all-reduces by Gloo over TCP on a communication
/// thread, in issue order. `interface`: as in JobOptions. Throws DeviceError if the ranks do not
/// find each other within `timeout`.
std::unique_ptr<Backend> make_gloo_backend(Rendezvous& rendezvous, int rank, int ranks,
                                           const std::string& interface,
                                           std::chrono::milliseconds timeout,
                                           const Plugins* plugins = nullptr);

}  // namespace ddpsim
