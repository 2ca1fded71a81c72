#include "tools/command/command.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "backend/device_error.hpp"
#include "backend/version.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/named_files.hpp"
#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "tools/command/cluster_flags.hpp"
#include "tools/command/command_help.hpp"
#include "tools/command/failure.hpp"
#include "tools/command/man_page.hpp"
#include "tools/kineto/trace.hpp"
#include "tools/report/writers/color.hpp"
#include "tools/report/writers/notes.hpp"

namespace ddpsim {
namespace po = boost::program_options;
namespace {

std::string overview() {
  std::string text =
      "ddpsim predicts how fast a step of data-parallel training will be, and which gradients will "
      "not hide\n"
      "behind the backward pass.\n\nusage: ddpsim COMMAND [flags]\n\n";
  for (const Command& command : commands())
    text += fmt::format("  {:<11} {}\n", command.name, command.summary);
  return text +
         "\nddpsim COMMAND --help tells a command's flags, with an example; --man writes all of\n"
         "that as a manual page; --version tells which build this is.\n\n"
         "exit codes: 0 done; 1 interrupted, or something is found to be wrong; 2 bad input, in "
         "a\n"
         "file, a flag, or a name that nothing here has (of a file, a folder, a network "
         "interface);\n"
         "3 outside the tolerance that was asked for; 4 the machine failed: no room or no right to "
         "write\n"
         "a file, no memory, a device, a link, or a rank that is lost.\n";
}

/// Throws std::runtime_error if stdout takes nothing.
void print(const std::string& text) {
  Outputs outputs;
  outputs.add_text(text);
  outputs.commit();
}

/// While help_of asks a command: where parse() puts its help instead of reading flags.
CommandHelp* listing = nullptr;

std::vector<ListedFlag> listed(const po::options_description& flags) {
  std::vector<ListedFlag> list;
  for (const auto& flag : flags.options()) {
    // "-q" of --quiet
    const std::string shown =
        flag->canonical_display_name(po::command_line_style::allow_dash_for_short);
    const bool letter = shown.size() == 2 && shown[0] == '-' && shown[1] != '-';
    list.push_back({flag->long_name(), letter ? shown.substr(1) : "",
                    flag->semantic()->max_tokens() > 0 ? flag->format_parameter() : "",
                    flag->description()});
  }
  return list;
}

/// "ddpsim run or ddpsim schedule": who takes a flag such as "--trace"; "" if nobody does.
std::string commands_with(const std::string& flag) {
  std::vector<std::string> names;
  for (const Command& command : commands())
    for (const ListedFlag& listed : help_of(command).flags)
      if ("--" + listed.name == flag) names.push_back("ddpsim " + command.name);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

/// What a flag takes whose value is named so: "a file, or - for standard output"; "": no file.
std::string file_of(std::string_view value_name) {
  if (!value_name.starts_with("FILE")) return "";
  if (value_name.ends_with("|-")) return "a file, or - for standard output";
  return value_name.ends_with("|FOLDER/") ? "a file, a folder/, or - for standard output"
                                          : "a file";
}

/// Refuses a file's name that looks like a flag, which is what follows a flag without its value. A
/// file of that name can be written ./--name.
void check_no_flag_is_file(const po::options_description& flags, const po::variables_map& values) {
  for (const auto& flag : flags.options()) {
    const std::string file =
        flag->semantic()->max_tokens() > 0 ? file_of(flag->format_parameter()) : "";
    const auto given = values.find(flag->long_name());
    if (file.empty() || given == values.end()) continue;
    const auto* text = boost::any_cast<std::string>(&given->second.value());
    if (text != nullptr && text->size() > 1 && text->starts_with('-'))
      throw InputError(fmt::format("--{} needs {}; got {}", flag->long_name(), file, *text));
  }
}

bool has(unsigned flags, Flag flag) {
  return (flags & static_cast<unsigned>(flag)) != 0;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"init", "write a scenario to start from, with a comment beside each key", init_command},
      {"run", "predict every strategy of a scenario and compare them", run_command},
      {"sweep", "predict a grid of scenarios: every combination of the values of some keys",
       sweep_command},
      {"plan", "find which strategy, batch and number of GPUs fit, are quickest, and cheapest",
       plan_command},
      {"explore", "serve a page of sliders on 127.0.0.1, whose figures and timeline follow",
       explore_command},
      {"schedule", "print the hook firing order and the buckets", schedule_command},
      {"tune", "find the best bucket sizes, with proof, and print what to paste", tune_command},
      {"score", "hold predictions against measured runs", score_command},
      {"describe", "capture a step of a PyTorch model, without a GPU, for run to price",
       describe_command},
      {"calibrate", "measure this machine: kernels, all-reduces, launch, interference",
       calibrate_command},
      {"validate", "run the same schedules for real and compare", validate_command},
      {"import", "turn traces and logs of others into profiles", import_command},
      {"backends", "what can run schedules for real here, and what is missing", backends_command},
      {"doctor", "what can be done on this machine, and how evenly it computes", doctor_command},
      {"list",
       "what the catalogue holds: models, devices, links, clusters; strategies, hooks, backends; "
       "what results mean",
       list_command},
      {"explain", "what a key of a scenario, or a word of the tables, means", explain_command},
      {"schema", "the JSON Schema of a scenario or profile, for editors", schema_command},
      {"completion", "what makes a shell complete commands and flags", completion_command}};
  return all;
}

bool parse(const std::vector<std::string>& arguments, const Usage& usage, unsigned flags,
           const po::options_description& own, CommonOptions& options) {
  po::options_description visible("flags");
  for (const auto& option : own.options()) visible.add(option);
  auto add = visible.add_options();
  if (has(flags, Flag::set))
    add("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
        "replace a key of the scenario, such as training.bucket_cap=50MiB (may be repeated); a "
        "path "
        "is looked for in the current folder, then in the scenario's");
  if (has(flags, Flag::laws_only))
    add("laws-only", po::bool_switch(&options.laws_only),
        "do not calibrate on the scenario's measured rows");
  if (has(flags, Flag::json))
    add("json", po::value(&options.json)->value_name("FILE|-"), "write JSON");
  if (has(flags, Flag::csv)) add("csv", po::value(&options.csv)->value_name("FILE|-"), "write CSV");
  if (has(flags, Flag::trace)) {
    add("trace", po::value(&options.trace)->value_name("FILE|FOLDER/"),
        "write a trace as PyTorch's profiler does (opens in ui.perfetto.dev); *.gz is compressed, "
        "a folder gets a file for each strategy and rank");
    add("all-ranks", po::bool_switch(&options.all_ranks),
        "with --trace: also ranks that do the same as another");
  }
  if (has(flags, Flag::report)) {
    add("report", po::value(&options.report)->value_name("FILE.html"),
        "write a page for a browser: pictures, tables, the scenario");
    add("svg", po::value(&options.svg)->value_name("FILE.svg"), "write the page's first picture");
  }
  if (has(flags, Flag::tables)) {
    add("markdown", po::value(&options.markdown)->value_name("FILE|-"),
        "write the tables as Markdown");
    add("wide", po::bool_switch(&options.wide),
        "show all columns, however narrow the terminal (or COLUMNS) is");
    add("color", po::value(&options.color)->value_name("auto|always|never"),
        "colours in tables and timelines; auto, the default: on a terminal, unless NO_COLOR is "
        "set");
    add("quiet,q", po::bool_switch(&options.quiet), "print no table");
  }
  add("help,h", "print this");
  if (listing != nullptr) {
    *listing = {usage, listed(visible)};
    return false;
  }
  po::options_description all;
  all.add(visible).add_options()("file", po::value(&options.files));
  const std::string command = usage.line.substr(0, usage.line.find(" ["));
  po::positional_options_description positional;
  positional.add("file", -1);
  try {
    po::command_line_parser parser(arguments);
    po::store(
        parser.options(all)
            .positional(positional)
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .run(),
        options.values);
    po::notify(options.values);
  } catch (const po::unknown_option& problem) {
    std::vector<std::string> names;
    for (const auto& flag : visible.options())
      names.push_back(fmt::format("--{}", flag->long_name()));
    const std::string given =
        problem.get_option_name().substr(0, problem.get_option_name().find('='));
    const std::string elsewhere = commands_with(given), guess = nearest(given, names);
    throw InputError(fmt::format("unknown flag \"{}\"{}; see {} --help", given,
                                 !elsewhere.empty()
                                     ? fmt::format(": {} has it, {} does not", elsewhere, command)
                                 : guess.empty() ? ""
                                                 : fmt::format("; did you mean \"{}\"?", guess),
                                 command));
  } catch (const po::error& problem) {
    throw InputError(fmt::format("{}; see {} --help", problem.what(), command));
  }
  if (options.values.count("help") > 0) {
    print(fmt::format("usage: {}\n\n{}\n\n{}\nexample: {}\n", usage.line, usage.about,
                      fmt::to_string(fmt::streamed(visible)), usage.example));
    return false;
  }
  for (const auto& [name, value] : options.values) {
    const auto* text = boost::any_cast<std::string>(&value.value());
    // explain --markdown takes no value: its empty text is no mistake.
    if (text != nullptr && text->empty() && !value.defaulted() && name != "markdown")
      throw InputError(fmt::format("--{}: expected a value, got an empty text", name));
  }
  check_no_flag_is_file(visible, options.values);
  wish_color(options.color);
  if (options.values.count("set") > 0) {
    for (const std::string& change : options.values["set"].as<std::vector<std::string>>()) {
      const auto equals = change.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == change.size())
        throw InputError(
            fmt::format("--set {}: expected KEY=VALUE, such as training.bucket_cap=50MiB", change));
      options.set.emplace_back(change.substr(0, equals), change.substr(equals + 1));
    }
  }
  return true;
}

CommandHelp help_of(const Command& command) {
  CommandHelp help;
  listing = &help;
  command.run({"--help"});
  listing = nullptr;
  return help;
}

namespace {

/// A picture or page under the name of another kind of file is none that opens. A name without an
/// ending says nothing.
void check_ending(const ResultPlace& place, const std::string& kind, const std::string& right) {
  const std::string ending = std::filesystem::path(place.path).extension().string();
  const bool short_form = ending == ".htm" && right == ".html";
  if (!ending.empty() && ending != right && !short_form)
    throw InputError(
        fmt::format("{} {}: what is written is {}: name the file {}", place.flag, place.path, kind,
                    std::filesystem::path(place.path).replace_extension(right).string()));
}

/// Whatever a scenario names may be read from the catalogue.
void check_no_catalogue_file(const ResultPlace& place) {
  std::error_code error;
  if (place.path.empty() || place.path == "-") return;
  const std::filesystem::path file = std::filesystem::canonical(place.path, error);
  if (error) return;
  const auto catalogue = std::filesystem::canonical(catalogue_folder(), error);
  if (!error && file.parent_path().parent_path() == catalogue)
    throw InputError(fmt::format(
        "{} {}: this would overwrite a file of the catalogue, which is read; name another file",
        place.flag, place.path));
}

}  // namespace

void check_results(const CommonOptions& options, const std::vector<ResultPlace>& others,
                   const MoreInputs& more) {
  check_ending({"--report", options.report}, "an HTML page, which browsers print as PDF", ".html");
  check_ending({"--svg", options.svg}, "an SVG picture", ".svg");
  if (options.all_ranks && options.trace.empty())
    throw InputError("--all-ranks goes with --trace alone");
  const bool trace_folder = is_trace_folder(options.trace);
  if (trace_folder) check_trace_folder(options.trace);
  std::vector<ResultPlace> places{{"--json", options.json},
                                  {"--csv", options.csv},
                                  {"--trace", trace_folder ? "" : options.trace},
                                  {"--markdown", options.markdown},
                                  {"--report", options.report},
                                  {"--svg", options.svg}};
  places.insert(places.end(), others.begin(), others.end());
  std::vector<std::filesystem::path> inputs;
  const bool files = std::ranges::any_of(
      places, [](const ResultPlace& place) { return !place.path.empty() && place.path != "-"; });
  if (!files) return check_places(places, inputs);
  NamedFiles named(
      [&](const std::filesystem::path& file, const std::string&) { inputs.push_back(file); });
  for (const auto* each : {&options.files, &more.files})
    for (const std::string& file : *each) {
      inputs.emplace_back(file);
      if (more.import && each == &options.files) continue;
      named.add_file(file);
      if (unreadable(file).empty())  // a scenario may have any name
        named.add_text(content_of_file(file), std::filesystem::path(file).parent_path());
    }
  for (const std::string& file : options.files) {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    for (const auto& from : {folder, std::filesystem::path(".")}) {
      for (const Setting& setting : options.set) named.add_text(setting.value, from);
      for (const std::string& value : more.values) named.add_text(value, from);
    }
  }
  for (const std::string& file : more.files)
    inputs.push_back(catalogue_folder() / "models" / (file + ".yaml"));
  if (!more.import)
    for (const ResultPlace& place : places) check_no_catalogue_file(place);
  check_places(places, inputs);
}

int run_program(const std::vector<std::string>& arguments) {
  expect_failures();
  try {
    if (arguments.size() > 1 && arguments[0] == "help" && !arguments[1].starts_with('-'))
      return run_program({arguments[1], "--help"});
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
        arguments[0] == "help") {
      print(overview());
      return arguments.empty() ? exit_input : exit_done;
    }
    if (arguments[0] == "--man") {
      Outputs outputs;
      outputs.add("-", man_page());
      outputs.commit();
      return exit_done;
    }
    if (arguments[0] == "--version") {
      print(fmt::format("ddpsim {}\n", version));
      return exit_done;
    }
    std::vector<std::string> names;
    for (const Command& command : commands()) {
      if (command.name == arguments[0])
        return command.run({arguments.begin() + 1, arguments.end()});
      names.push_back(command.name);
    }
    const std::string guess = nearest(arguments[0], names);
    throw InputError(
        fmt::format("unknown command \"{}\"{}; see ddpsim --help", arguments[0],
                    guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
  } catch (const InputError& problem) {
    note("ddpsim: {}", problem.what());
    return exit_input;
  } catch (const std::invalid_argument& problem) {  // a law refuses what the scenario asks of it
    note("ddpsim: {}", problem.what());
    return exit_input;
  } catch (const std::exception& problem) {
    note("ddpsim: {}", failure_text(problem));
    return failure_code_of(problem);
  }
}

}  // namespace ddpsim
