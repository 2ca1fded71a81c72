#pragma once

#include <string>
#include <vector>

#include "model/ddp/peak_memory.hpp"
#include "model/scenario/scenario.hpp"
#include "tools/report/records/record.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// What a schedule of `training` takes of each rank's memory.
StepMemory memory_of(const Scenario& scenario, const Training& training, const Schedule& schedule);
StepMemory memory_of(const Scenario& scenario, const Step& step);

/// Is the step's memory within the device's, with the margin? Nothing if that is not known.
FieldValue fits_value(const Scenario& scenario, const StepMemory& memory);

Record memory_record(const Scenario& scenario, const StepMemory& memory);

/// A line for people: the most that any of the steps takes, when, and of what it consists.
std::string memory_text(const Scenario& scenario, const std::vector<NamedStep>& steps);

/// A line for each step that takes more than the device has.
std::vector<std::string> memory_warnings(const Scenario& scenario,
                                         const std::vector<NamedStep>& steps);

}  // namespace ddpsim
