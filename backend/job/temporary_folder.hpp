#pragma once

#include <filesystem>

#include <fmt/format.h>

#include "backend/device_error.hpp"

namespace ddpsim {

/// The folder for files that do not last: $TMPDIR, else /tmp. Throws DeviceError if it is none.
inline std::filesystem::path temporary_folder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error)
    throw DeviceError(fmt::format(
        "there is no folder for files that do not last ({}): set TMPDIR to one that can be written",
        error.message()));
  return folder;
}

}  // namespace ddpsim
