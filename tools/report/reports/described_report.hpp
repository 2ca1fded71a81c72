#pragma once

#include <string>

#include "model/scenario/scenario.hpp"
#include "tools/report/records/record.hpp"

namespace ddpsim {

/// "described by torch 2.13.0, ..." with the notes of the description; "" for a workload that was
/// not described.
std::string described_text(const Scenario& scenario);

/// The description for programs, under the key "described"; empty if there is no description.
Record described_entry(const Scenario& scenario);

/// "partial: mylib::op x 3 ..."; "" where every operation has a rule.
std::string partial_text(const Scenario& scenario);

}  // namespace ddpsim
