#include "backend/job/module_file.hpp"

#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/job/library_search.hpp"
#include "model/base/printable.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

std::string module_of(const std::string& name) {
  return fmt::format("ddpsim_{}.so", name);
}

/// "the GPU module", for errors.
std::string title(const std::string& name) {
  return name == "gpu" ? "the GPU module" : name;
}

fs::path find_module(const std::string& name) {
  std::error_code error;
  for (const fs::path& folder : module_folders())
    if (fs::is_regular_file(folder / module_of(name), error)) return folder / module_of(name);
  return {};
}

}  // namespace

std::vector<fs::path> module_folders() {
  const char* elsewhere = std::getenv("DDPSIM_MODULES");
  if (elsewhere != nullptr && *elsewhere != '\0') return {fs::absolute(elsewhere)};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path above = program.parent_path().parent_path();
  return {above / "modules", above / "lib" / "ddpsim"};
}

bool has_module(const std::string& name) {
  return !find_module(name).empty();
}

const ModuleHeader* load_module(const std::string& name, bool global) {
  const fs::path file = find_module(name);
  if (file.empty()) {
    std::string places;
    for (const fs::path& folder : module_folders())
      places += fmt::format("{}{}", places.empty() ? "" : " nor in ", folder.string());
    throw DeviceError(fmt::format("{}, {}, is not in {}; DDPSIM_MODULES names another folder",
                                  title(name), module_of(name), places));
  }
  const auto refuse = [&](const std::string& problem) {
    return DeviceError(fmt::format("{} {} {}", title(name), file.string(), problem));
  };
  std::string reason;
  void* library =
      open_library(file, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL), library_folders(), reason);
  if (library == nullptr) throw refuse("cannot be loaded: " + reason);
  using Entry = const ModuleHeader* (*)();
  const std::string entry = fmt::format("ddpsim_{}_module", name);
  const auto function = reinterpret_cast<Entry>(dlsym(library, entry.c_str()));
  if (function == nullptr)
    throw refuse(fmt::format("has no function {}: it is no module of ddpsim", entry));
  const ModuleHeader* module = function();
  if (module == nullptr || module->build == nullptr ||
      std::string(module->build) != DDPSIM_MODULE_BUILD)
    throw refuse(fmt::format(
        "is of another build of ddpsim ({}) than this program ({}): install both together",
        module == nullptr || module->build == nullptr ? "unknown" : printable(module->build),
        DDPSIM_MODULE_BUILD));
  return module;  // never closed: CUDA and NCCL do not like to be
}

}  // namespace ddpsim
