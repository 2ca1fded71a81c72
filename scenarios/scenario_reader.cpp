#include "scenarios/scenario_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/cluster_reader.hpp"
#include "scenarios/training_reader.hpp"
#include "scenarios/workload_reader.hpp"
#include "scenarios/yaml.hpp"

namespace ddpsim {
namespace {

std::vector<Strategy> read_strategies(const Yaml& given) {
  std::vector<Strategy> strategies;
  for (const Yaml& item : given.list("a list of strategies, such as [naive, overlap]")) {
    const auto strategy = item.one_of<Strategy>(all_strategies);
    if (std::find(strategies.begin(), strategies.end(), strategy) != strategies.end())
      item.fail(fmt::format("{} is in the list already", name_of(strategy)));
    strategies.push_back(strategy);
  }
  if (strategies.empty()) given.fail("expected at least one strategy");
  return strategies;
}

MeasuredRow read_row(const Yaml& given) {
  MeasuredRow row;
  row.place = given.place();
  YamlMap map(given);
  row.strategy = map.required("strategy").one_of<Strategy>(all_strategies);
  row.step = map.required("step").duration();
  if (const auto value = map.optional("bucket_cap")) row.bucket_cap = value->bytes();
  if (const auto value = map.optional("communication")) row.communication = value->duration();
  if (const auto value = map.optional("forward")) row.times.forward = value->duration();
  if (const auto value = map.optional("backward")) row.times.backward = value->duration();
  if (const auto value = map.optional("optimizer")) row.times.optimizer = value->duration();
  if (const auto value = map.optional("note")) row.note = value->text("a text");
  if (const auto value = map.optional("set"))
    for (const auto& [key, setting] : YamlMap(*value).entries())
      row.set.emplace_back(key, setting.text("a value"));
  map.finish();
  return row;
}

Measured read_measured(const Yaml& given) {
  Measured measured;
  YamlMap map(given);
  if (const auto source = map.optional("source")) measured.source = source->text("a text");
  if (const auto value = map.optional("calibrate_on"))
    measured.calibrate_on = read_strategies(*value);
  for (const Yaml& row :
       map.required("rows").list("a list of rows such as {strategy: naive, step: 531.7 ms}"))
    measured.rows.push_back(read_row(row));
  if (measured.rows.empty()) given.fail("expected at least one row");
  map.finish();
  return measured;
}

Scenario read(const Yaml& root, const std::filesystem::path& file) {
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
  return read(root, profile);
}

}  // namespace ddpsim
