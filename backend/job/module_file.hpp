#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ddpsim {

/// Parts of the program that it loads only when they are asked for, so that it starts without their
/// libraries: `gpu` (CUDA, cuBLAS, NCCL). A module is a shared library that exports one
/// function of C, ddpsim_NAME_module. That function returns a table which begins with a
/// ModuleHeader and whose rest the program and the module agree on.
struct ModuleHeader {
  /// DDPSIM_MODULE_BUILD (cmake/modules.cmake) of the module. What the table holds are types of
  /// C++, so a module works only with a program that was built from the same headers by the same
  /// compiler.
  const char* build;
};

/// Where a module is looked for, in this order: the folder that DDPSIM_MODULES names, and that
/// alone; else ../modules beside the folder of the running program (in a build tree and in a
/// package), and ../lib/ddpsim (installed).
std::vector<std::filesystem::path> module_folders();

/// Does any of the folders that are searched hold this module?
bool has_module(const std::string& name);

/// The table of a module, which stays loaded from then on; "gpu" is ddpsim_gpu.so. `global`: its
/// libraries' symbols are there for what those libraries load themselves. Throws DeviceError, in
/// one line, if the module is in none of the folders, cannot be loaded (a library it needs is
/// missing), is no module of that name, or is of another build.
const ModuleHeader* load_module(const std::string& name, bool global = false);

}  // namespace ddpsim
