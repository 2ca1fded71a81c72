#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/parallel/memory/peak_memory.hpp"
#include "model/scenario/scenario.hpp"
#include "tools/report/records/record.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// What a step takes of the memory of the rank that takes the most.
StepMemory memory_of(const Scenario& scenario, const Step& step);
StepMemory memory_of(const Scenario& scenario, const Result& result);

/// Is the step's memory within the device's, with the margin? Nothing if that is not known.
FieldValue fits_value(const Scenario& scenario, const StepMemory& memory);

Record memory_record(const Scenario& scenario, const Step& step, const StepMemory& memory);

/// A line for people: the most that a step takes, or any of several does, when, and of what it
/// consists.
std::string memory_text(const Scenario& scenario, const Step& step);
std::string memory_text(const Scenario& scenario, const std::vector<Result>& results);

/// A line if the step of that name takes more than the device has; "" if not.
std::string memory_warning(const Scenario& scenario, const std::string& name, Bytes peak);
/// A line for each step that takes more than the device has.
std::vector<std::string> memory_warnings(const Comparison& run);
/// What it means where PyTorch's allocator would reserve more than the device has.
inline constexpr std::string_view full_pools =
    "each time that its pools are full it waits for the device and gives free memory back";
/// Does a step fit, while the pools of PyTorch's allocator would not?
bool reserves_too_much(const Scenario& scenario, const StepMemory& memory);
/// A line for each such step.
std::vector<std::string> reserved_notes(const Comparison& run);

}  // namespace ddpsim
