#pragma once

#include <map>
#include <string>

#include "tests/golden/families.hpp"

namespace ddpsim::golden {

/// One scenario: a family of families.hpp and a seed, or a folder of shipped scenarios
/// ("shipped/examples") and the name of a file.
struct Case {
  std::string family, member;
};

/// The scenario of a case, and the files that it names.
DrawnScenario scenario_of(const Case& one);

/// What commands answer about a case: command ("run", "schedule", "tune", "sweep", "score") to one
/// line of JSON with every figure in full and the text for a terminal, or to "refused: " and the
/// refusal. A command that is not asked is missing. Nothing depends on the machine: neither the
/// folder of the sources nor the release of the program is in it.
using Answers = std::map<std::string, std::string>;
Answers answers_to(const Case& one);

/// What a golden file says of a case: the case, the first figures for people, and a checksum of
/// each answer, separated by tabs.
std::string line_of(const Case& one, const Answers& answers);

}  // namespace ddpsim::golden
