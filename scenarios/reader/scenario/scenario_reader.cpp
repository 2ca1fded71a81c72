#include "scenarios/reader/scenario/scenario_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/format/file_kind.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/measured/measured_reader.hpp"
#include "scenarios/reader/scenario/not_a_scenario.hpp"
#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/training/training_reader.hpp"
#include "scenarios/reader/workload/workload_reader.hpp"

namespace ddpsim {
namespace {

/// A description of a later micro-batch adds each gradient to the one that is there, by kernels of
/// its own; of several micro-batches the schedule adds them by its own, as AccumulateGrad does in
/// all but the first.
void check_accumulation(const YamlMap& entries, const Scenario& scenario) {
  if (!scenario.described || scenario.training.micro_batches == 1) return;
  const std::vector<std::string>& notes = scenario.described->notes;
  const bool adds = std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with("a later micro-batch:") ||
           (note.starts_with("one of the later of ") && note.find("micro-batches") != note.npos);
  });
  if (!adds) return;
  const auto training = entries.find("training");
  const auto place = training ? YamlMap(*training).find("micro_batches") : std::nullopt;
  (place ? *place : entries.node())
      .fail(fmt::format(
          "{} is the description of a later micro-batch, which adds gradients already, and this "
          "would add them once more: describe the model without --later-micro-batch",
          scenario.workload.name));
}

/// The network as fully_shard's mixed precision runs it, where that casts anything.
void cast_parameters(const YamlMap& entries, Scenario& scenario) {
  const std::optional<DType> type = scenario.training.mp_policy.param_dtype;
  if (!type) return;
  const YamlMap training(entries.at("training"));
  const YamlMap policy(training.at("mp_policy"));
  scenario.workload.cast =
      read_cast_workload(entries.at("workload"), scenario, *type, policy.at("param_dtype"));
  if (!scenario.described || !scenario.workload.cast) return;
  Bytes copies;
  for (const Parameter& each : scenario.workload.parameters)
    if (each.shape.size() > 1) copies += each.elements() * size_of(*type);
  scenario.described->notes.push_back(
      fmt::format("under mp_policy the passes are those described under autocast to {0}, whose "
                  "casts of weights mixed precision of shards does not have; what they are cast "
                  "to, up to {1}, counts as activations. Describe the model with parameters in {0} "
                  "to plan without",
                  name_of(*type), to_string(copies)));
}

Map<Scenario> make_scenario_map() {
  Map<Scenario> map("scenario", "A question to ddpsim: what is trained, on what, and how.");
  // The cluster goes before the workload, which asks what its device can multiply.
  map.key("name", value::text("a name"), &Scenario::name,
          {.meaning = "What the scenario is called in tables.",
           .otherwise = "the name of the file",
           .example = "GPT XL on two H100s"})
      .key_read(
          "cluster",
          {{.kind = Form::Kind::entry, .catalogue = cluster_entries}, value::map(&cluster_keys)},
          [](Scenario& scenario, const Yaml& given) {
            scenario.cluster = read_cluster(given, scenario.price);
          },
          {.meaning = "The devices, and what connects them: a ready cluster by its name, or a "
                      "mapping of keys.",
           .example = "{device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}",
           .required = true,
           .short_for = {"system"}})
      .key_read("workload", {value::map(&workload_keys)},
                [](Scenario& scenario, const Yaml& given) { read_workload(given, scenario); },
                {.meaning = "The network that is trained.",
                 .example = "{model: gpt2, batch: 8, sequence: 512}",
                 .required = true})
      .key_read("training", {value::map(&training_keys)},
                [](Scenario& scenario, const Yaml& given) {
                  scenario.training = read_training(given, scenario.workload);
                },
                {.meaning = "How gradients are averaged.",
                 .otherwise = "as DistributedDataParallel does by itself",
                 .example = "{bucket_cap: 50 MiB, micro_batches: 4}"})
      .key("compare", strategies_value(), &Scenario::compare,
           {.meaning = "The strategies that `run` predicts, in the order of its table. Where it is "
                       "not given, `training.strategy` is among them too if it shards (fsdp)."})
      .key("measured", measured_value(), &Scenario::measured,
           {.meaning = "What a real run showed. `score` holds predictions against it, and `run` "
                       "fits compute times to it.",
            .otherwise = "nothing was measured",
            .example = "{rows: [{strategy: naive, step: 531.7 ms}]}"})
      .check([](Scenario& scenario, const YamlMap& entries) {
        if (scenario.cluster.skew_is_usual && scenario.training.input == Input::decoded)
          scenario.cluster.skew = usual_skew_of_decoded_input;
        if (!entries.has("compare") && shards(scenario.training.strategy))
          scenario.compare.push_back(scenario.training.strategy);
        check_training(entries, scenario);
        check_accumulation(entries, scenario);
        cast_parameters(entries, scenario);
      });
  return map;
}

const Map<Scenario>& scenario_map() {
  static const Map<Scenario> map = make_scenario_map();
  return map;
}

/// Is it a workload profile or a workload description?
bool is_model(const Yaml& root) {
  const auto format = YamlMap(root).find("format");
  return format &&
         (format->scalar() == "ddpsim.workload/1" || format->scalar() == "ddpsim.workload/2");
}

Yaml load_scenario(const std::filesystem::path& file) {
  check_is_no_ingredient(file);
  return Yaml::load(file);
}

/// Throws InputError if nothing says what the model is to run on.
void check_cluster_given(const std::filesystem::path& file, const std::vector<Setting>& settings) {
  if (touches(settings, "cluster")) return;
  throw InputError(fmt::format(
      "{} is a model: say what it is to run on, such as --set cluster=dgx-h100 or --set "
      "cluster.device=h100-sxm (run, tune, sweep, schedule and explore have --cluster "
      "and --device; validate and calibrate on processors take --set 'cluster={{device: "
      "generic-cpu, ranks_per_node: 2, intra_node: ethernet-10g}}' --ranks 2, and measure the link "
      "that is there)",
      file.string()));
}

Scenario read(const Yaml& root, const std::filesystem::path& file) {
  Scenario scenario;
  scenario.file = file.string();
  scenario.name = file.stem().string();
  // What is missing from a mapping may stand beside it.
  YamlMap(root).refuse_misplaced(scenario_keys());
  scenario_map().read(root, scenario);
  return scenario;
}

}  // namespace

const MapDescription& scenario_keys() {
  return scenario_map().description();
}

Scenario read_scenario(const std::filesystem::path& file, const std::vector<Setting>& overrides) {
  Yaml root = load_scenario(file);
  if (is_model(root)) return read_profile_as_scenario(file, overrides);
  check_kind(root, FileKind::scenario);
  apply_settings(root, overrides);
  Scenario scenario = read(root, file);
  scenario.is_changed = !overrides.empty();
  return scenario;
}

bool is_workload_profile(const std::filesystem::path& file) {
  return is_model(load_scenario(file));
}

Scenario read_profile_as_scenario(const std::filesystem::path& profile,
                                  const std::vector<Setting>& overrides) {
  check_cluster_given(profile, overrides);
  std::string quoted = "'";
  for (const char c : std::filesystem::absolute(profile).string())
    quoted += c == '\'' ? "''" : std::string(1, c);
  Yaml root = Yaml::of_nothing(profile);
  root.apply({{"workload.model", quoted + "'"}});
  apply_settings(root, overrides);
  Scenario scenario = read(root, profile);
  scenario.measured.reset();  // on another cluster than the keys describe, perhaps
  const bool says_what = std::any_of(overrides.begin(), overrides.end(),
                                     [](const auto& setting) { return setting.key == "compare"; });
  if (scenario.cluster.ranks() == 1 && !says_what)
    scenario.compare = {Strategy::none};  // nothing is averaged
  return scenario;
}

}  // namespace ddpsim
