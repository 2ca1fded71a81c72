// Libraries that a module needs and the system does not find.
//
// A library of CUDA that pip installed lies where no loader looks. `dlopen` names the first library
// that it misses, "libnccl.so.2: cannot open shared object file: ...". Once that one is open, who
// needs a library of this name takes it, wherever it lies. So we open what is missing and try
// again, until nothing is missing or a name is in none of the folders.
#include "backend/job/library_search.hpp"

#include <algorithm>
#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>

#include "model/base/printable.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// The folders below `folder`, in the order of their names.
std::vector<fs::path> below(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

/// .../lib/python3.11/site-packages/nvidia/nccl/lib and the like, of an environment of Python.
void add_packages(std::vector<fs::path>& folders, const fs::path& environment) {
  for (const fs::path& python : below(environment / "lib"))
    if (python.filename().string().starts_with("python3"))
      for (const char* packages : {"site-packages", "dist-packages"})
        for (const fs::path& package : below(python / packages / "nvidia"))
          folders.push_back(package / "lib");
}

/// The library that `dlerror` says is missing; "" where it says something else.
std::string missing_library(const std::string& reason) {
  const std::size_t end = reason.find(": cannot open shared object file: No such file");
  return end == std::string::npos ? "" : reason.substr(0, end);
}

fs::path file_in(const std::vector<fs::path>& folders, const std::string& name) {
  std::error_code error;
  for (const fs::path& folder : folders)
    if (fs::exists(folder / name, error)) return folder / name;
  return {};
}

}  // namespace

std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* place = std::getenv(name); place != nullptr && *place != '\0')
      folders.push_back(fs::path(place) / "lib64");
  if (const char* active = std::getenv("VIRTUAL_ENV"); active != nullptr && *active != '\0')
    add_packages(folders, active);
  std::error_code error;
  add_packages(folders, fs::read_symlink("/proc/self/exe", error).parent_path().parent_path());
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

void* open_library(const fs::path& file, int flags, const std::vector<fs::path>& folders,
                   std::string& reason) {
  for (std::string before;;) {
    if (void* library = dlopen(file.c_str(), flags)) return library;
    const char* said = dlerror();
    reason = printable(said == nullptr ? "no reason given" : said);
    const std::string missing = missing_library(reason);
    if (missing.empty() || missing == before || missing.find('/') != std::string::npos)
      return nullptr;
    const fs::path found = file_in(folders, missing);
    if (found.empty()) {
      reason = fmt::format(
          "it needs {}, which was not found: install PyTorch for GPUs, or CUDA and NCCL, into the "
          "Python environment of ddpsim, or name the folder of {} in LD_LIBRARY_PATH",
          missing, missing);
      return nullptr;
    }
    if (open_library(found, RTLD_NOW | RTLD_LOCAL, folders, reason) == nullptr) return nullptr;
    before = missing;
  }
}

}  // namespace ddpsim
