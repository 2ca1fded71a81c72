#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/settings.hpp"
#include "tools/report/records/record.hpp"

namespace ddpsim {

/// "described by torch 2.13.0, ..." with the notes of the description; "" for a workload that was
/// not described.
std::string described_text(const Scenario& scenario);

/// "gpt2 is computed as by Hugging Face's code (...): describe yours ...", where a model of the
/// catalogue may be computed otherwise and no step of it was measured; else "".
std::string code_text(const Scenario& scenario);

/// "described: most products in bf16, as under autocast; with activation checkpoints: ..."; ""
/// where neither holds, and for a workload that was not described.
std::string described_modes_text(const Scenario& scenario);

/// That text at a point of a grid.
struct ModesAtPoint {
  std::vector<Setting> settings;  ///< the point's keys
  std::string text;
};
/// The text once where it holds at all points, else with the points at which each does. `points`:
/// of the grid, of which `looked_at` may be the first ones.
std::string described_modes_text(const std::vector<ModesAtPoint>& looked_at, std::size_t points);

/// The description for programs, under the key "described"; empty if there is no description.
Record described_entry(const Scenario& scenario);

/// "partial: mylib::op x 3 ..."; "" where every operation has a rule.
std::string partial_text(const Scenario& scenario);

}  // namespace ddpsim
