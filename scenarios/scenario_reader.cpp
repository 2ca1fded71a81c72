#include "scenarios/scenario_reader.hpp"

#include "scenarios/cluster_reader.hpp"
#include "scenarios/measured_reader.hpp"
#include "scenarios/training_reader.hpp"
#include "scenarios/workload_reader.hpp"
#include "scenarios/yaml.hpp"

namespace ddpsim {
Scenario read_scenario(const std::filesystem::path& file,
                       const std::vector<std::pair<std::string, std::string>>& overrides) {
  Yaml root = Yaml::load(file);
  root.apply(overrides);
  YamlMap map(root);
  Scenario scenario;
  scenario.file = file.string();
  scenario.name = file.stem().string();
  if (const auto name = map.optional("name")) scenario.name = name->text("a name");
  scenario.cluster = read_cluster(map.required("cluster"));
  read_workload(map.required("workload"), scenario);
  if (const auto training = map.optional("training"))
    scenario.training = read_training(*training, scenario.workload);
  if (const auto compare = map.optional("compare")) scenario.compare = read_strategies(*compare);
  if (const auto measured = map.optional("measured")) scenario.measured = read_measured(*measured);
  map.finish();
  return scenario;
}

}  // namespace ddpsim
