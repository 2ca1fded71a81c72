#include "backend/job/module_file.hpp"

#include <cstdlib>
#include <string>

#include <catch2/catch.hpp>

#include "backend/device/cuda/gpu_module.hpp"
#include "backend/device_error.hpp"
#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

/// Why the GPU module in this folder is refused; "" if it is not.
std::string refusal_in(const std::filesystem::path& folder) {
  setenv("DDPSIM_MODULES", folder.c_str(), 1);
  std::string reason;
  try {
    load_module("gpu");
  } catch (const DeviceError& problem) {
    reason = problem.what();
  }
  unsetenv("DDPSIM_MODULES");
  return reason;
}

std::string odd(const std::string& name) {
  return DDPSIM_ODD_MODULES + name;
}

TEST_CASE("a module that is not there, or is something else, is told in one line",
          "[backend][module_file]") {
  const Scratch scratch;
  const std::string file = scratch.path("ddpsim_gpu.so").string();
  CHECK(refusal_in(scratch.folder()) == "the GPU module, ddpsim_gpu.so, is not in " +
                                            scratch.folder().string() +
                                            "; DDPSIM_MODULES names another folder");
  scratch.write("ddpsim_gpu.so", "no library");
  CHECK_THAT(refusal_in(scratch.folder()),
             Catch::StartsWith("the GPU module " + file + " cannot be loaded: " + file + ": "));
  CHECK_THAT(refusal_in(odd("unresolved")),
             Catch::Contains("cannot be loaded: ") &&
                 Catch::Contains("ddpsim_test_of_a_library_that_is_not_there"));
  CHECK_THAT(refusal_in(odd("empty")),
             Catch::EndsWith("has no function ddpsim_gpu_module: it is no module of ddpsim"));
}

TEST_CASE("a module of another build is refused with both builds", "[backend][module_file]") {
  CHECK_THAT(refusal_in(odd("another_build")),
             Catch::Contains("is of another build of ddpsim (0.0.9-old\\x1b) than this program (" +
                             std::string(DDPSIM_VERSION) + "-") &&
                 Catch::EndsWith("): install both together"));
  CHECK_THAT(refusal_in(odd("no_table")), Catch::Contains("another build of ddpsim (unknown)"));
}

TEST_CASE("modules are looked for beside the program, or where DDPSIM_MODULES says alone",
          "[backend][module_file]") {
  const std::filesystem::path here =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  CHECK(module_folders() ==
        std::vector<std::filesystem::path>{here / "modules", here / "lib/ddpsim"});
  setenv("DDPSIM_MODULES", "/some/place", 1);
  CHECK(module_folders() == std::vector<std::filesystem::path>{"/some/place"});
  CHECK_FALSE(has_module("gpu"));
  setenv("DDPSIM_MODULES", "", 1);
  CHECK(module_folders().size() == 2);
  unsetenv("DDPSIM_MODULES");
}

TEST_CASE("what a module throws looking for GPUs is what is missing", "[backend][module_file]") {
  // In a child of this process, which loads no module itself.
  setenv("DDPSIM_MODULES", odd("no_driver").c_str(), 1);
  CHECK(look_for_gpus().problem == "there is no driver\x1b here");
  setenv("DDPSIM_MODULES", odd("fake").c_str(), 1);
  const GpuLook look = look_for_gpus();
  CHECK(look.problem.empty());
  CHECK(look.count == 1);
  unsetenv("DDPSIM_MODULES");
}

}  // namespace
}  // namespace ddpsim
