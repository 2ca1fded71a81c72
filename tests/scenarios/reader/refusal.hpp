#pragma once

#include <sstream>
#include <string>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {

/// A small good scenario for tests to spoil, a line at a time. Line numbers start at 1.
inline const std::string good_scenario =
    "workload:\n"               // 1
    "  model: resnet18\n"       // 2
    "  batch: 8\n"              // 3
    "  dtype: fp32\n"           // 4
    "cluster:\n"                // 5
    "  device: h100-sxm\n"      // 6
    "  ranks_per_node: 2\n"     // 7
    "  intra_node: nvlink4\n"   // 8
    "training:\n"               // 9
    "  bucket_cap: 25 MiB\n"    // 10
    "compare: [naive, flat]\n"  // 11
    "name: a small one\n";      // 12

// What an error about an unknown key ends with: the keys there are.
inline const std::string known_in_scenario =
    "; known: name, cluster, workload, training, compare, measured";
inline const std::string known_in_workload =
    "; known: model, batch, sequence, image, channels_last, activation_checkpointing, frozen, "
    "dtype, compute, optimizer, clip_gradients, times";

/// The good scenario with `text` (one line or several) in place of line `number`.
inline std::string spoiled(int number, const std::string& text) {
  std::istringstream lines(good_scenario);
  std::string all, line;
  for (int i = 1; std::getline(lines, line); ++i) all += (i == number ? text : line) + "\n";
  return all;
}

/// Why a scenario of this content (in a file named s.yaml) is refused; "" if it is not. Anything
/// but an InputError passes through and fails the test.
inline std::string refusal(const Scratch& scratch, const std::string& content,
                           const std::vector<Setting>& set = {}) {
  const std::filesystem::path file = scratch.write("s.yaml", content);
  try {
    read_scenario(file, set);
  } catch (const InputError& problem) {
    return scratch.without_folder(problem.what());
  }
  return "";
}

/// Why the good scenario is refused with one line in place of another.
inline std::string refusal_at(const Scratch& scratch, int number, const std::string& text) {
  return refusal(scratch, spoiled(number, text));
}

}  // namespace ddpsim
