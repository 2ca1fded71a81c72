#pragma once

// The questions that Python asks, in C++ alone: what a command of the program answers about files,
// by the same functions, as one JSON text.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/plan/plan_words.hpp"
#include "tools/report/reports/run_report.hpp"
#include "tools/study/grid.hpp"
#include "tools/study/tune_request.hpp"
#include "tools/sweep/sweep_results.hpp"

namespace ddpsim {

/// Hears what is under way and which fraction of all work is done. May throw, which ends the work.
using Tell = std::function<void(const std::string& what, double fraction)>;

/// A scenario or a workload profile, with keys replaced as `--set` replaces them.
struct Question {
  std::string file;  ///< a path, which may be one of a MemoryFile
  std::vector<Setting> set;
  bool laws_only = false;
};

Scenario read(const Question& question);

// Each answer is an object of JSON: "record" holds what `--json` writes, "rows" the lines of
// `--csv`, "text" what a terminal shows, "summary" the beginning of that, to the end of the first
// table, "notes" what the program says on stderr. All throw InputError or std::invalid_argument for
// what they refuse.

/// What an answer of `run` has beside that, each if it is asked for.
struct RunExtras {
  bool trace = false;  ///< "trace": a Chrome trace
  bool hooks = false;  ///< "hooks": a list of every hook in the order they fire
  bool page = false;   ///< "page": what `--report` writes
};

/// `tell` is told of the seeds that are done.
std::string run_answer(const Question& question, const RunRequest& request, const RunExtras& extras,
                       const Tell& tell = {});
/// `axes`: as `--vary` takes them; `best`: the figure that rows are sorted by; "": of none. A point
/// that the scenario refuses has its reason in its row, as long as one is not refused.
std::string vary_answer(const Question& question, const std::vector<std::string>& axes,
                        const std::string& best);
std::string schedule_answer(const Question& question, bool tasks, std::optional<int> steps);
/// With "ddp", the arguments of DistributedDataParallel, and "ddp_step_ms", the step with them; of
/// a scenario whose strategy is fsdp with "units" and "wrapping", as of a candidate of a plan.
std::string tune_answer(const Question& question, const TuneRequest& request, const Tell& tell);
/// With "units", the names of the modules of each call of fully_shard but the root's, and
/// "wrapping", of each candidate of the record that is one of fsdp and was simulated: "code", the
/// Python for the model, and fully_shard's settings ("reshard_after_forward", "offloads",
/// "mp_policy", "replicate" and "shard", ranks); of the others null. "code": of each candidate that
/// Python, or what a ZeRO's project takes, or "".
std::string plan_answer(const Question& question, const PlanWords& words, const Tell& tell);
/// `calibrate_on`: as the flag takes it; "": as each file says.
std::string score_answer(const std::vector<std::string>& files, const std::vector<Setting>& set,
                         const std::string& calibrate_on, bool laws_only, const Tell& tell);
/// `jobs`: threads; 0: all cores. `best`: the figure that the text is sorted by; rows keep the
/// order of the grid. A point that the scenario refuses has its reason in its row.
std::string sweep_answer(const Question& question, const std::vector<std::string>& axes, int jobs,
                         const std::string& best, const Tell& tell);
/// The answer of a sweep that has been computed, wherever that was.
std::string answer_of(const Sweep& sweep, const PointResults& results, const std::string& best,
                      std::vector<std::string> notes = {});
/// Throws InputError where `best` is no figure that rows can be sorted by, or "".
void check_best(const std::string& best);
std::vector<Axis> axes_of(const std::vector<std::string>& texts);
/// What the catalogue holds, as `ddpsim list` names it.
std::string list_answer(const std::string& kind);
/// The keys of a YAML file with those of `set` put into it, as an object of JSON. A scalar is a
/// number or a truth value where JSON spells it alike, else a text.
std::string load_answer(const std::string& file, const std::vector<Setting>& set);

}  // namespace ddpsim
