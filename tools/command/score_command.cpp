#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/reader/input_error.hpp"
#include "tools/command/command.hpp"
#include "tools/command/flag_values.hpp"
#include "tools/command/progress.hpp"
#include "tools/command/score.hpp"
#include "tools/report/names.hpp"
#include "tools/report/output.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

const Usage usage{
    "ddpsim score [flags] FILE...",
    "Holds predictions against the rows under `measured:` of each file. Calibration rows fix the "
    "compute time (none or\n"
    "naive), the time each collective costs beyond the link's law (naive with its communication) "
    "and the strength of\n"
    "interference (overlap); every other row is predicted. exposed error is |predicted - measured "
    "step| over the naive\n"
    "communication time of the file. Exit code 3 if the median error is beyond --tolerance.",
    "ddpsim score scenarios/measured/*.yaml --calibrate-on naive,overlap"};

std::vector<Strategy> strategies_of(const std::string& list) {
  std::vector<Strategy> strategies;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    const auto strategy = strategy_named(name);
    if (!strategy)
      throw InputError(fmt::format(
          "--calibrate-on {}: unknown strategy \"{}\"; known: none, naive, flat, overlap, bucketed",
          list, name));
    strategies.push_back(*strategy);
  }
  return strategies;
}

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

std::string text_of(const FileScore& score) {
  std::string text = fmt::format("{}\n  {}\n", score.file, describe(score.fit));
  for (const std::string& note : score.fit.notes) text += "  note: " + note + "\n";
  Table table({"strategy", "measured ms", "predicted ms", "error", "exposed error", ""},
              Table::Last::text);
  for (const ScoreRow& row : score.rows)
    table.add({row.label, fmt::format("{:.1f}", in_ms(row.measured)),
               fmt::format("{:.1f}", in_ms(row.predicted)), percent(row.error()),
               row.exposed_error < 0 ? "-" : fmt::format("{:.1f} %", 100 * row.exposed_error),
               row.calibration ? "calibration" : ""});
  return text + table.text() + "\n";
}

nlohmann::ordered_json json_of(const std::vector<FileScore>& files,
                               const std::vector<std::string>& left_out,
                               const ScoreSummary& summary) {
  nlohmann::ordered_json json;
  json["format"] = "ddpsim.score/1";
  json["rows"] = nlohmann::ordered_json::array();
  for (const FileScore& file : files) {
    for (const ScoreRow& row : file.rows) {
      nlohmann::ordered_json entry;
      entry["file"] = row.file;
      entry["strategy"] = name_of(row.strategy);
      if (row.bucket_cap.count > 0)
        entry["bucket_cap_bytes"] = row.bucket_cap.count;
      else
        entry["bucket_cap_bytes"] = nullptr;
      entry["measured_ms"] = in_ms(row.measured);
      entry["predicted_ms"] = in_ms(row.predicted);
      entry["error"] = row.error();
      entry["calibration"] = row.calibration;
      entry["label"] = row.label;
      if (row.exposed_error >= 0) entry["exposed_error"] = row.exposed_error;
      json["rows"].push_back(entry);
    }
  }
  json["left_out"] = left_out;
  json["predicted_rows"] = summary.predicted_rows;
  json["median_error"] = summary.median_error;
  json["ninth_decile_error"] = summary.ninth_decile_error;
  json["worst_error"] = summary.worst_error;
  json["median_exposed_error"] = summary.median_exposed_error;
  return json;
}

std::string csv_of(const std::vector<FileScore>& files) {
  std::string text = "file,strategy,bucket_cap_bytes,measured_ms,predicted_ms,error,calibration\n";
  for (const FileScore& file : files)
    for (const ScoreRow& row : file.rows)
      text += fmt::format("{},{},{},{:.4f},{:.4f},{:.5f},{}\n", row.file, name_of(row.strategy),
                          row.bucket_cap.count > 0 ? fmt::format("{}", row.bucket_cap.count) : "",
                          in_ms(row.measured), in_ms(row.predicted), row.error(), row.calibration);
  return text;
}

}  // namespace

int score_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  std::string calibrate_on, tolerance;
  boost::program_options::options_description own;
  own.add_options()("calibrate-on",
                    boost::program_options::value(&calibrate_on)->value_name("LIST"),
                    "strategies whose rows are fitted, such as naive,overlap (default: as each "
                    "file says); files without a row\n"
                    "of each are left out")(
      "tolerance", boost::program_options::value(&tolerance)->value_name("SHARE"),
      "exit with code 3 if the median error is larger, such as 5%");
  if (!parse(arguments, usage, Flag::json | Flag::csv | Flag::quiet, own, options))
    return exit_done;
  if (options.files.empty())
    throw InputError("score needs files: ddpsim score scenarios/measured/*.yaml");
  const std::vector<Strategy> strategies = strategies_of(calibrate_on);
  const double allowed = tolerance.empty() ? -1 : share_of("--tolerance", tolerance);

  std::vector<FileScore> files;
  std::vector<std::string> left_out;
  {
    Progress progress(options.quiet);
    for (const std::string& file : options.files) {
      const std::size_t done = files.size() + left_out.size();
      progress.show(fmt::format("{} of {} files", done, options.files.size()),
                    static_cast<double>(done) / static_cast<double>(options.files.size()));
      if (auto score = score_file(file, strategies))
        files.push_back(std::move(*score));
      else
        left_out.push_back(file);
    }
  }
  if (files.empty())
    throw InputError(
        fmt::format("--calibrate-on {}: none of the files has a row of each", calibrate_on));
  const ScoreSummary summary = summarise(files);
  Outputs outputs;
  if (!options.quiet && options.json != "-" && options.csv != "-") {
    std::string text;
    for (const FileScore& file : files) text += text_of(file);
    text += fmt::format(
        "{} predicted rows in {} files: median error {:.1f} %, nine in ten within {:.1f} %, "
        "worst {:.1f} %; median exposed error {:.1f} %\n",
        summary.predicted_rows, files.size(), 100 * summary.median_error,
        100 * summary.ninth_decile_error, 100 * summary.worst_error,
        100 * summary.median_exposed_error);
    outputs.add("-", text);
  }
  outputs.add(options.json, json_text(json_of(files, left_out, summary)));
  outputs.add(options.csv, csv_of(files));
  outputs.commit();
  if (!left_out.empty() && !options.quiet)
    fmt::print(stderr, "{} files lack a row of {} and are left out\n", left_out.size(),
               calibrate_on);
  if (allowed >= 0 && summary.median_error > allowed) {
    fmt::print(stderr, "ddpsim: the median error of {:.1f} % is beyond the tolerance of {:.1f} %\n",
               100 * summary.median_error, 100 * allowed);
    return exit_tolerance;
  }
  return exit_done;
}

}  // namespace ddpsim
