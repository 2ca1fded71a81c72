#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ddpsim {

/// The folders in which CUDA and NCCL are installed, beside those that the system looks in by
/// itself: of the toolkit, and of the packages of PyTorch's that pip puts into the environment
/// which is active or holds this program.
std::vector<std::filesystem::path> library_folders();

/// Opens a shared library as `dlopen(file, flags)` does, and with it each library that it needs and
/// that the system does not find but `folders` hold. Returns its handle, or a null pointer with the
/// reason, in one line, in `reason`: of a missing library its name, and how to come by it.
void* open_library(const std::filesystem::path& file, int flags,
                   const std::vector<std::filesystem::path>& folders, std::string& reason);

}  // namespace ddpsim
