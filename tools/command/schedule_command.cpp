#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tools/command/cluster_flags.hpp"
#include "tools/command/command.hpp"
#include "tools/command/pages.hpp"
#include "tools/command/plugin_flag.hpp"
#include "tools/kineto/trace.hpp"
#include "tools/report/reports/cluster_notes.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/report/reports/schedule_report.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/study/measured_rows.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

const Usage schedule_usage{
    "ddpsim schedule [flags] SCENARIO",
    "Prints the order in which the gradient hooks of the scenario's `training.strategy` fire, if "
    "it has any, each bucket\n"
    "with its contents, and what the step consists of. Times are predicted: `host` is when the "
    "hook fires, `gradient` when\n"
    "the gradient is ready on the device, both from the start of the step. Hooks of your own: "
    "`ddpsim run --hooks-log`.\n"
    "--csv has the buckets. Calibrated like `ddpsim run`.",
    "ddpsim schedule scenarios/examples/first.yaml --set training.strategy=bucketed"};

}  // namespace

int schedule_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  boost::program_options::options_description own;
  bool tasks = false, programs = false;
  int count = 0;
  own.add_options()("tasks", boost::program_options::bool_switch(&tasks),
                    "print every task as well")(
      "program", boost::program_options::bool_switch(&programs),
      "print what each task does to which memory, and in which groups of ranks")(
      "steps", boost::program_options::value(&count)->value_name("N"),
      "of N consecutive steps from the first on, each that differs from those before it");
  ClusterFlags cluster;
  cluster.add_to(own);
  PluginFlag plugin;
  plugin.add_to(own);
  if (!parse(arguments, schedule_usage,
             Flag::set | Flag::json | Flag::csv | Flag::trace | Flag::tables | Flag::laws_only, own,
             options))
    return exit_done;
  if (options.files.size() != 1)
    throw InputError("schedule needs one scenario: ddpsim schedule scenarios/examples/first.yaml");
  if (!options.csv.empty() && options.values.count("steps") > 0)
    throw InputError("--csv has the buckets of one step: take --steps out, or take --json");
  options.prepend(cluster.settings());
  check_results(options, {}, {plugin.files, {}});
  const Plugins plugins = plugin.open();
  const Scenario scenario = read_scenario(options.files[0], options.set);
  if (!plugin.files.empty()) check_plugins(plugins, scenario.training);
  const CalibratedModel priced = price_calibrated(scenario, options.laws_only);
  if (!options.quiet) {
    add_notes(cluster_notes(scenario, options.set));
    add_notes(fit_notes(priced));
  }
  std::optional<int> steps_asked;
  if (options.values.count("steps") > 0) steps_asked = count;
  const ConsecutiveSteps steps = scheduled_steps(priced.model, scenario.training, steps_asked);
  const Step& step = steps.kinds.front();
  Pages pages(options);
  pages.add(schedule_page(scenario, steps, steps_asked, tasks, knowledge_of(scenario, priced)));
  if (programs) pages.add(program_page(steps));
  if (priced.fit) {
    Page page;
    page.add(Paragraph{describe_calibration(*priced.fit)});
    pages.add(page);
  }
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add(options.json, json_text(json_of(schedule_record(scenario, steps, steps_asked))));
  outputs.add(options.csv, csv_of(buckets_table(scenario, step)));
  add_trace(outputs, options.trace, scenario, {{strategy_label(step.training), &step}},
            options.traced_ranks());
  outputs.commit();
  return exit_done;
}

}  // namespace ddpsim
