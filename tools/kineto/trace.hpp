#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// Which ranks a trace shows.
enum class TraceRanks : std::uint8_t {
  different,  ///< of ranks that do the same at the same times the first
  all
};

/// A trace in the format of PyTorch's profiler (Kineto), which opens in Perfetto: a process for the
/// host and one for the device of each step and rank (tools/kineto/kineto_rank.hpp). Times in
/// microseconds, to the picosecond, from the start of the step.
/// Throws std::invalid_argument for more ranks than a file should hold.
std::string chrome_trace(const Scenario& scenario, const std::vector<NamedStep>& steps,
                         TraceRanks which = TraceRanks::different);

/// Does a place for traces mean a folder: does it end in "/", or is there one?
bool is_trace_folder(const std::string& place);

/// Throws InputError if this is no folder, DeviceError if it may not be written to. Leaves nothing
/// behind.
void check_trace_folder(const std::string& folder);

/// A file holds the trace of all steps, compressed if its name ends in ".gz". A folder gets a file
/// for each step and rank, as the profiler of a real job leaves them and as tools expect them:
/// FOLDER/STEP/rank0.json.gz. Throws InputError if FOLDER/STEP holds other traces, which would be
/// taken for ranks of the same job. The trace is made while it is written: the scenario and the
/// steps must live until outputs.commit().
void add_trace(Outputs& outputs, const std::string& place, const Scenario& scenario,
               const std::vector<NamedStep>& steps, TraceRanks which);

}  // namespace ddpsim
