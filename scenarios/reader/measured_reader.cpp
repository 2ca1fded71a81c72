#include "scenarios/reader/measured_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ddpsim {
namespace {

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

}  // namespace

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

}  // namespace ddpsim
