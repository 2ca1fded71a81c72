#pragma once

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {

/// What a command that ends well says as JSON.
inline Json json_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const Outcome outcome = ddpsim(arguments);
  CAPTURE(arguments, outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

/// The command ends with exit code 2 and one line, which has `says` in it.
inline void refused(const std::vector<std::string>& arguments, const std::string& says) {
  const Outcome outcome = ddpsim(arguments);
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == 2);
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK_THAT(outcome.err, Catch::Contains(says));
  CHECK(outcome.out.empty());
}

/// The keys below `training:` that a text prints to paste, as flags: --set training.KEY=VALUE.
inline std::vector<std::string> pasted_training(const std::string& text) {
  std::vector<std::string> flags;
  bool is_inside = false;
  for (const std::string& line : lines_of(text)) {
    if (line == "training:") is_inside = true;
    if (is_inside && line.empty()) break;
    const std::size_t colon = line.find(": ");
    if (!is_inside || !line.starts_with("  ") || colon == std::string::npos) continue;
    flags.emplace_back("--set");
    flags.push_back("training." + line.substr(2, colon - 2) + "=" + line.substr(colon + 2));
  }
  return flags;
}

}  // namespace ddpsim
