#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace ddpsim {

/// The Python that captures and profiles models, and what it has.
struct Python {
  std::filesystem::path program;
  std::string version;       ///< "3.11.2"
  std::string torch;         ///< "2.13.0+cpu"; empty: it has none
  bool has_package = false;  ///< ddpsim.describe is found
};

/// The one that DDPSIM_PYTHON names, else that of the active virtual environment, else that of the
/// virtual environment this program is installed in, else python3. Throws InputError if there is
/// none.
std::filesystem::path python_program();

/// Puts the folder that holds the Python package, as it is installed beside the program or lies in
/// the source tree, on PYTHONPATH; nothing where Python itself knows the package.
void let_python_find_package();

/// Asks `program` in a process of its own, which imports neither torch nor the package. Throws
/// InputError, in a line, if it is no Python or does not answer in time; DeviceError: no process.
Python look_at_python(const std::filesystem::path& program, std::chrono::milliseconds timeout);

}  // namespace ddpsim
