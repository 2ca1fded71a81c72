#include "scenarios/reader/text/memory_file.hpp"

#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

#include "scenarios/reader/catalogue/named_files.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"

namespace ddpsim {
namespace {

const std::string folder = DDPSIM_SCENARIOS "/examples/";

TEST_CASE("a text in memory is read in place of a file", "[scenarios][memory_file]") {
  const std::string text = content_of_file(folder + "own-profile.yaml");
  const std::string path = folder + "not-there.yaml";
  REQUIRE_THROWS_AS(read_scenario(path), InputError);
  {
    // What it names is found in the folder of its path.
    const MemoryFile file(path, text);
    const Scenario scenario = read_scenario(path);
    CHECK(scenario.name == read_scenario(folder + "own-profile.yaml").name);
    CHECK(read_scenario(folder + "./not-there.yaml").workload.parameters.size() ==
          scenario.workload.parameters.size());
    CHECK(content_of_file(path) == text);
    CHECK_THROWS_AS(MemoryFile(path, "other: text"), std::invalid_argument);
  }
  CHECK_THROWS_AS(read_scenario(path), InputError);
  CHECK_FALSE(text_in_memory(path).has_value());
}

TEST_CASE("what is wrong in a text in memory is told with its line", "[scenarios][memory_file]") {
  const std::string path = folder + "in-memory.yaml";
  const MemoryFile file(path,
                        "workload: {model: gpt2, batch: 1, sequence: 16}\n"
                        "cluster: {device: a100-40}\nbucket: 3\n");
  CHECK_THROWS_WITH(read_scenario(path), Catch::Matchers::StartsWith(path + ":3:1: "));
}

}  // namespace
}  // namespace ddpsim
