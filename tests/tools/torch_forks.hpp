#pragma once

#include <string>
#include <vector>

#include "tests/tools/program.hpp"
#include "tests/torch_oracle.hpp"

namespace ddpsim {

/// A Python that has torch; or none, and the test is not run: see torch_oracle.hpp.
inline std::string torch_python() {
  static const std::optional<std::string> found = python_with_torch();
  if (found) return *found;
  const char* torch = std::getenv("DDPSIM_TORCH");
  REQUIRE((torch == nullptr || std::string(torch) != "required"));
  not_run("no torch: tools/test installs it");
  return "";
}

/// A Python program: its script and arguments.
struct PythonProgram {
  std::vector<std::string> words;
  Environment environment;
};

/// What each did in `scratch`, `at_once` at a time, in forks of one process: torch is imported
/// once.
inline std::vector<Outcome> torch_forks(const Scratch& scratch,
                                        const std::vector<PythonProgram>& programs,
                                        int at_once = 1) {
  Json all = Json::array();
  for (const PythonProgram& program : programs) {
    Json environment = Json::object();
    for (const auto& [name, value] : program.environment) environment[name] = value;
    all.push_back({{"words", program.words}, {"environment", std::move(environment)}});
  }
  const auto forks = std::filesystem::path(DDPSIM_TEST_DATA).parent_path() / "torch/forks.py";
  const std::string file = scratch.write("programs.json", all.dump()).string();
  const Outcome done =
      execute({torch_python(), forks.string(), file, std::to_string(at_once)}, scratch.folder());
  INFO(done.err);
  REQUIRE(done.code == 0);
  std::vector<Outcome> found;
  for (const Json& each : done.json())
    found.push_back({each.at("code"), each.at("out"), each.at("err")});
  REQUIRE(found.size() == programs.size());
  return found;
}

}  // namespace ddpsim
