#pragma once

#include <stdexcept>
#include <string_view>

#include "model/base/printable.hpp"

namespace ddpsim {

/// The machine failed, not the input: a device, a link, another rank, or a file that it could not
/// write (full disk, no permission, busy). One line for the user; the exit code is 4.
class DeviceError : public std::runtime_error {
 public:
  explicit DeviceError(std::string_view text) : std::runtime_error(error_line(text)) {}
};

}  // namespace ddpsim
