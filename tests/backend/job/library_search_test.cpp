#include "backend/job/library_search.hpp"

#include <algorithm>
#include <cstdlib>

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

TEST_CASE("a library opens with what it needs from the folders that are named",
          "[backend][library_search]") {
  const std::filesystem::path file = DDPSIM_NEEDING_LIBRARY;
  const std::string needed = "libddpsim_test_needed.so";
  const Scratch scratch;
  std::string reason;
  CHECK(open_library(file, RTLD_NOW, {scratch.folder()}, reason) == nullptr);
  CHECK_THAT(reason, Catch::StartsWith("it needs " + needed + ", which was not found: install "));
  CHECK(reason.find('\n') == std::string::npos);
  // One that is there and is no library is told by itself.
  scratch.write(needed, "no library");
  CHECK(open_library(file, RTLD_NOW, {scratch.folder()}, reason) == nullptr);
  CHECK_THAT(reason, Catch::StartsWith(scratch.path(needed).string() + ": "));

  void* library = open_library(file, RTLD_NOW, {"/nowhere", DDPSIM_NEEDED_FOLDER}, reason);
  REQUIRE(library != nullptr);
  const auto function = reinterpret_cast<int (*)()>(dlsym(library, "ddpsim_test_needing"));
  REQUIRE(function != nullptr);
  CHECK(function() == 7);
}

TEST_CASE("CUDA's libraries are looked for in the toolkit and in the environment of Python",
          "[backend][library_search]") {
  const Scratch scratch;
  for (const char* package : {"nccl", "cu13"})
    std::filesystem::create_directories(scratch.path("lib/python3.12/site-packages/nvidia") /
                                        package / "lib");
  setenv("VIRTUAL_ENV", scratch.folder().c_str(), 1);
  setenv("CUDA_HOME", "/opt/a toolkit", 1);
  const std::vector<std::filesystem::path> folders = library_folders();
  unsetenv("VIRTUAL_ENV");
  unsetenv("CUDA_HOME");
  const auto holds = [&](const std::filesystem::path& folder) {
    return std::find(folders.begin(), folders.end(), folder) != folders.end();
  };
  CHECK(folders.front() == "/opt/a toolkit/lib64");
  CHECK(holds(scratch.path("lib/python3.12/site-packages/nvidia/nccl/lib")));
  CHECK(holds(scratch.path("lib/python3.12/site-packages/nvidia/cu13/lib")));
  CHECK(holds("/usr/local/cuda/lib64"));
}

}  // namespace
}  // namespace ddpsim
