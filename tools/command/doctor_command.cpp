#include <fmt/format.h>

#include "backend/version.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/command/command.hpp"
#include "tools/command/pages.hpp"
#include "tools/report/records/doctor_fields.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/progress.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/machine_checks.hpp"

namespace ddpsim {
namespace {

namespace po = boost::program_options;

const Usage doctor_usage{
    "ddpsim doctor [flags]",
    "Looks at this machine: what can be done here, what is missing for the rest, and "
    "whether the processors\n"
    "compute at one pace, without which no timing means much. Two ranks of its own "
    "talk to each other; nothing\n"
    "is changed. Pace changes for seconds at a time: --seconds 20 sees more of it. Exit code 4 "
    "where `run` and `tune`\n"
    "cannot work, 1 where they refuse a part of the catalogue; without GPUs, NCCL or Python they "
    "do neither.",
    "ddpsim doctor --seconds 1"};

/// How long the pace is watched, as --seconds says.
std::chrono::milliseconds watched(const std::string& text) {
  constexpr int longest = 3600;
  return std::chrono::seconds{count_of("--seconds", text, 0, longest)};
}

Table checks_table(const MachineReport& report) {
  Table table{{fields::part, fields::health, fields::found, fields::advice}};
  for (const MachineCheck& check : report.checks)
    table.add({check.part, name_of(check.health), check.found,
               check.advice.empty() ? FieldValue() : FieldValue(check.advice)});
  return table;
}

Table abilities_table(const MachineReport& report) {
  Table table{{fields::ability, fields::possible, fields::why_not}};
  for (const Ability& ability : report.abilities) {
    const std::string& because = ability.missing.empty() ? ability.except : ability.missing;
    table.add({ability.what,
               !ability.missing.empty()  ? "no"
               : !ability.except.empty() ? "in part"
                                         : "yes",
               because.empty() ? FieldValue() : FieldValue(because)});
  }
  return table;
}

nlohmann::ordered_json json_of(const MachineReport& report) {
  Record record;
  record.add(fields::version_of_program, version);
  nlohmann::ordered_json json = json_of(record);
  json[std::string(fields::checks.name)] = json_of(checks_table(report));
  json[std::string(fields::abilities.name)] = json_of(abilities_table(report));
  Record pace;
  if (report.pace)
    pace.add(fields::one_pace, report.pace->even())
        .add(fields::pace_low_ms, in_ms(report.pace->low()))
        .add(fields::pace_high_ms, in_ms(report.pace->high()))
        .add(fields::pace_stolen, report.stolen_share);
  json[std::string(fields::pace.name)] =
      report.pace ? json_of(pace) : nlohmann::ordered_json(nullptr);
  return json;
}

}  // namespace

int doctor_command(const std::vector<std::string>& arguments) {
  std::string seconds = "5";
  po::options_description own;
  own.add_options()("seconds", po::value(&seconds)->value_name("N"),
                    "how long the pace of the processors is watched (5); 0: not");
  CommonOptions options;
  if (!parse(arguments, doctor_usage, Flag::json | Flag::tables, own, options)) return exit_done;
  if (!options.files.empty()) throw InputError("doctor takes no file");
  CheckLimits limits;
  limits.pace = watched(seconds);
  check_places({{"--json", options.json}, {"--markdown", options.markdown}}, {});
  MachineReport report;
  {
    Progress progress(options.quiet);
    report = check_machine(
        limits, [&](const std::string& what, double done) { progress.show(what, done); });
  }
  Page page;
  page.add(checks_table(report));
  page.add(abilities_table(report));
  Pages pages(options);
  pages.add(page);
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add(options.json, json_text(json_of(report)));
  outputs.commit();
  const Lack lack = what_predictions_lack(report);
  if (lack.extent == Lack::Extent::nothing) return exit_done;
  note("ddpsim: {}", lack.text);
  return lack.extent == Lack::Extent::all ? exit_machine : exit_failure;
}

}  // namespace ddpsim
