#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace ddpsim {

/// Something a step is of. Two are alike if their keys are.
struct Fact {
  std::string what;  ///< "device", "batch"
  std::string text;  ///< for people; "": not known, or there is none
  std::string key;
};

/// What the length of a step depends on, of a scenario.
struct StepFacts {
  std::vector<Fact> compute;  ///< what is computed, on which device
  Fact work;                  ///< how much; it follows from `compute` unless all of it is alike
  std::vector<Fact> communication;  ///< between which ranks, over which link
  bool communicates = false;        ///< are there several ranks?
};

StepFacts step_facts(const Scenario& scenario);

/// Pairs of facts, of a measured step and of a step it is held against, that are not alike: all of
/// `compute`, else the work; and what communication depends on if `with_communication`.
struct DifferentFact {
  Fact measured, here;
};
std::vector<DifferentFact> differences(const StepFacts& measured, const StepFacts& here,
                                       bool with_communication);

}  // namespace ddpsim
