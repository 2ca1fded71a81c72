#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/text/settings.hpp"
#include "tools/kineto/trace.hpp"
#include "tools/report/writers/output.hpp"

namespace ddpsim {

/// Exit codes of the program. `exit_failure`: the command was interrupted, or its answer is that
/// something is wrong. `exit_machine`: the machine failed, and the same command may succeed later
/// or elsewhere (DeviceError; no memory, no threads).
inline constexpr int exit_done = 0, exit_failure = 1, exit_input = 2, exit_tolerance = 3,
                     exit_machine = 4;

/// A command of the program: its file says how it reads its arguments and what it prints.
struct Command {
  std::string name;
  std::string summary;
  int (*run)(const std::vector<std::string>&
                 arguments);  ///< the exit code; throws InputError for bad input
};
const std::vector<Command>& commands();

int init_command(const std::vector<std::string>& arguments);
int run_command(const std::vector<std::string>& arguments);
int explore_command(const std::vector<std::string>& arguments);
int sweep_command(const std::vector<std::string>& arguments);
int plan_command(const std::vector<std::string>& arguments);
int schedule_command(const std::vector<std::string>& arguments);
int calibrate_command(const std::vector<std::string>& arguments);
int validate_command(const std::vector<std::string>& arguments);
int tune_command(const std::vector<std::string>& arguments);
int score_command(const std::vector<std::string>& arguments);
int import_command(const std::vector<std::string>& arguments);
int list_command(const std::vector<std::string>& arguments);
int explain_command(const std::vector<std::string>& arguments);
int schema_command(const std::vector<std::string>& arguments);
int describe_command(const std::vector<std::string>& arguments);
int backends_command(const std::vector<std::string>& arguments);
int doctor_command(const std::vector<std::string>& arguments);

/// The whole program: finds the command, runs it and turns exceptions into one line on stderr and a
/// code.
int run_program(const std::vector<std::string>& arguments);

/// Flags several commands share.
struct CommonOptions {
  std::vector<std::string> files;
  std::vector<Setting> set;
  std::string json, csv, trace, markdown, report, svg;  ///< paths; "-" is stdout; "" is off
  std::string color = "auto";                           ///< auto, always or never
  bool quiet = false;
  bool all_ranks = false;                        ///< a trace shows ranks that are alike too
  bool wide = false;                             ///< tables keep all their columns
  bool laws_only = false;                        ///< do not calibrate on measured rows
  boost::program_options::variables_map values;  ///< the command's own flags

  TraceRanks traced_ranks() const { return all_ranks ? TraceRanks::all : TraceRanks::different; }

  /// What other flags say as --set would. Throws InputError where --set says something else.
  void prepend(const std::vector<Setting>& settings) {
    check_agree(settings, set);
    check_agree_within(settings, set);
    set.insert(set.begin(), settings.begin(), settings.end());
  }
};

/// How a command describes itself in --help.
struct Usage {
  std::string line;     ///< "ddpsim run [flags] SCENARIO..."
  std::string about;    ///< a paragraph
  std::string example;  ///< a line that works
};

/// `tables`: what goes with tables on stdout, --quiet, --wide, --color and --markdown. `report`:
/// --report and --svg.
enum class Flag : unsigned {
  set = 1,
  json = 2,
  csv = 4,
  trace = 8,
  tables = 16,
  laws_only = 32,
  report = 64
};
constexpr unsigned operator|(Flag a, Flag b) {
  return static_cast<unsigned>(a) | static_cast<unsigned>(b);
}
constexpr unsigned operator|(unsigned a, Flag b) {
  return a | static_cast<unsigned>(b);
}

/// Parses arguments of a command. Prints help and returns false for --help. Throws InputError for
/// unknown flags or values that do not parse.
bool parse(const std::vector<std::string>& arguments, const Usage& usage, unsigned flags,
           const boost::program_options::options_description& own, CommonOptions& options);

/// What a command reads beside its scenario files and what `--set` names.
struct MoreInputs {
  std::vector<std::string> files;
  std::vector<std::string> values;  ///< of keys of the scenario, as --vary gives them
  /// The command's files are logs or traces, which name no files, and a result may replace an entry
  /// of the catalogue.
  bool import = false;
};

/// Call before the work. Throws InputError if a result cannot be written, or would overwrite
/// another or a file that is read: scenarios, and profiles, calibrations and tables that they name.
/// `others` are places of results beside those of the common flags.
void check_results(const CommonOptions& options, const std::vector<ResultPlace>& others = {},
                   const MoreInputs& more = {});

}  // namespace ddpsim
