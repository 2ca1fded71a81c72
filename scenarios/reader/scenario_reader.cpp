#include "scenarios/reader/scenario_reader.hpp"

#include <algorithm>

#include "scenarios/reader/cluster_reader.hpp"
#include "scenarios/reader/measured_reader.hpp"
#include "scenarios/reader/training_reader.hpp"
#include "scenarios/reader/workload_reader.hpp"
#include "scenarios/reader/yaml.hpp"

namespace ddpsim {
namespace {

Scenario read(const Yaml& root, const std::filesystem::path& file) {
  YamlMap map(root);
  Scenario scenario;
  scenario.file = file.string();
  scenario.name = file.stem().string();
  if (const auto name = map.optional("name")) scenario.name = name->text("a name");
  scenario.cluster = read_cluster(map.required("cluster"));
  read_workload(map.required("workload"), scenario);
  const auto training = map.optional("training");
  if (training) scenario.training = read_training(*training, scenario.workload);
  if (const auto compare = map.optional("compare")) scenario.compare = read_strategies(*compare);
  if (std::count(scenario.compare.begin(), scenario.compare.end(), Strategy::bucketed) > 0)
    check_bucketed(training ? *training : root, scenario.training, scenario.workload);
  if (const auto measured = map.optional("measured")) scenario.measured = read_measured(*measured);
  map.finish();
  return scenario;
}

}  // namespace

Scenario read_scenario(const std::filesystem::path& file,
                       const std::vector<std::pair<std::string, std::string>>& overrides) {
  Yaml root = Yaml::load(file);
  root.apply(overrides);
  return read(root, file);
}

bool is_workload_profile(const std::filesystem::path& file) {
  const auto format = YamlMap(Yaml::load(file)).optional("format");
  return format && format->is_scalar() && format->text("a format") == "ddpsim.workload/1";
}

Scenario read_profile_as_scenario(
    const std::filesystem::path& profile,
    const std::vector<std::pair<std::string, std::string>>& overrides) {
  std::string quoted = "'";
  for (const char c : std::filesystem::absolute(profile).string())
    quoted += c == '\'' ? "''" : std::string(1, c);
  Yaml root = Yaml::of_nothing();
  root.apply({{"workload.model", quoted + "'"}});
  root.apply(overrides);
  Scenario scenario = read(root, profile);
  scenario.measured.reset();  // on another cluster than the keys describe, perhaps
  return scenario;
}

}  // namespace ddpsim
