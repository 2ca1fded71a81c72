#pragma once

#include <stdexcept>
#include <string>

namespace ddpsim {

/// The machine failed, not the input: a device, a link, another rank, or a file that it could not
/// write (full disk, no permission, busy). One line for the user; the exit code is 4.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ddpsim
