#include <cstdio>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/command/command.hpp"
#include "tools/command/pages.hpp"
#include "tools/command/reports.hpp"
#include "tools/command/tolerance.hpp"
#include "tools/report/pages/score_section.hpp"
#include "tools/report/reports/score_report.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/progress.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/score.hpp"

namespace ddpsim {
namespace {

const Usage score_usage{
    "ddpsim score [flags] FILE...",
    "Holds predictions against the rows under `measured:` of each file. Calibration rows fix the "
    "compute time (none or\n"
    "naive), the time each collective costs beyond the link's law (naive with its communication) "
    "and the strength of\n"
    "interference (overlap); every other row is predicted, and with --laws-only all are. --set is "
    "of the rows, too: they are taken as measured so. exposed error is |predicted - measured step| "
    "over the naive\n"
    "communication time of the file. Exit code 3 if the median error is beyond --tolerance.",
    "ddpsim score scenarios/measured/*.yaml --calibrate-on naive,overlap"};

}  // namespace

int score_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  std::string calibrate_on, tolerance;
  ScoreSettings settings;
  boost::program_options::options_description own;
  own.add_options()("calibrate-on",
                    boost::program_options::value(&calibrate_on)->value_name("LIST"),
                    "strategies whose rows are fitted, such as naive,overlap (default: as each "
                    "file says); files without a row\n"
                    "of each are left out")(
      "tolerance", boost::program_options::value(&tolerance)->value_name("SHARE"),
      "exit with code 3 if the median error is larger, such as 5%");
  if (!parse(arguments, score_usage,
             Flag::json | Flag::csv | Flag::tables | Flag::set | Flag::laws_only | Flag::report,
             own, options))
    return exit_done;
  if (options.files.empty())
    throw InputError("score needs files: ddpsim score scenarios/measured/*.yaml");
  settings.laws_only = options.laws_only;
  if (settings.laws_only && !calibrate_on.empty())
    throw InputError("--laws-only fits nothing: take it or --calibrate-on out");
  settings.calibrate_on = fitted_strategies(calibrate_on);
  settings.set = options.set;
  const double allowed = tolerance.empty() ? -1 : share_of("--tolerance", tolerance);

  check_results(options);
  std::vector<FileScore> files;
  std::vector<std::string> left_out;
  {
    Progress progress(options.quiet);
    for (const std::string& file : options.files) {
      const std::size_t done = files.size() + left_out.size();
      progress.show(fmt::format("{} of {} files", done, options.files.size()),
                    static_cast<double>(done) / static_cast<double>(options.files.size()));
      if (auto score = score_file(file, settings))
        files.push_back(std::move(*score));
      else
        left_out.push_back(file);
    }
  }
  if (files.empty())
    throw InputError(
        fmt::format("--calibrate-on {}: none of the files has a row of each", calibrate_on));
  const ScoreSummary summary = summarise(files);
  Pages pages(options);
  if (pages.wanted()) pages.add(score_page(files, summary));
  Reports reports(options);
  if (reports.wanted()) reports.add(score_section(files, summary));
  Outputs outputs;
  pages.add_to(outputs);
  reports.add_to(outputs, "Predictions held against measured rows");
  outputs.add(options.json, json_text(json_of(score_record(files, left_out, summary))));
  outputs.add(options.csv, csv_of(score_table(files)));
  outputs.commit();
  if (!left_out.empty() && !options.quiet)
    note("{} files lack a row of {} and are left out", left_out.size(), calibrate_on);
  if (allowed >= 0 && summary.predicted_rows == 0) {
    note(
        "ddpsim: --tolerance: something is fitted to each row, so none is predicted: give rows of "
        "other strategies, or --laws-only");
    return exit_input;
  }
  return held_to_tolerance(summary.median_error, allowed);
}

}  // namespace ddpsim
