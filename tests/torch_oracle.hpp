#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>
#include <stdlib.h>

#include "tests/not_run.hpp"
#include "tests/torch_python.hpp"

namespace ddpsim {

inline std::optional<std::string> python_with_torch() {
  const std::string python = torch_python_of_build();
  // Found, not imported: that takes a second, each time.
  const std::string attempt = "'" + python +
                              "' -c 'import importlib.util as u, sys; "
                              "sys.exit(u.find_spec(\"torch\") is None)' 2>/dev/null";
  if (std::system(attempt.c_str()) == 0) return python;
  return std::nullopt;
}

struct TemporaryFolder {
  std::filesystem::path path;

  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "ddpsim-torch-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()));
    path = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// What PyTorch itself says: `script` of the folder tests/, run as `python3 script IN OUT` with
/// `questions` in IN; its OUT. None, and the test is not run, where PyTorch is not installed,
/// unless DDPSIM_TORCH=required says that it must be.
inline std::optional<std::string> ask_torch(const std::string& script,
                                            const std::string& questions) {
  const std::optional<std::string> python = python_with_torch();
  if (!python) {
    const char* torch = std::getenv("DDPSIM_TORCH");
    REQUIRE((torch == nullptr || std::string(torch) != "required"));
    not_run("no torch: tools/test installs it");
    return std::nullopt;
  }
  const TemporaryFolder folder;
  const std::filesystem::path in = folder.path / "questions", out = folder.path / "answers";
  std::ofstream(in) << questions;
  const std::filesystem::path path = std::filesystem::path(DDPSIM_TEST_DATA).parent_path() / script;
  const std::string command =
      "'" + *python + "' -B '" + path.string() + "' '" + in.string() + "' '" + out.string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  std::ostringstream answers;
  answers << std::ifstream(out).rdbuf();
  return answers.str();
}

}  // namespace ddpsim
