#pragma once

#include <stdexcept>
#include <string>

namespace ddpsim {

/// A device, a link or another rank failed: one line for the user; the program ends with exit code
/// 1.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ddpsim
