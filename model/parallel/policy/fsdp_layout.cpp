#include "model/parallel/policy/fsdp_layout.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "model/parallel/policy/fsdp_units.hpp"
#include "model/parallel/policy/refusals.hpp"

namespace ddpsim {
namespace {

using program::Slice;

constexpr std::int64_t parts_of(std::int64_t rows, std::int64_t ranks) {
  return (rows + ranks - 1) / ranks;
}

/// What comes up to there gets inputs that need no gradient.
std::size_t first_layer_with_gradients(const StepBuilder& step) {
  const auto completes_any = [](const StepWorks::LayerWorks& layer) {
    return std::ranges::any_of(layer.completes, [](const auto& each) { return !each.empty(); });
  };
  const auto first = std::ranges::find_if(step.works.layers, completes_any);
  return static_cast<std::size_t>(first - step.works.layers.begin());
}

/// [parameter] The layer that completes its gradient; 0: none does.
std::vector<std::size_t> layers_of_parameters(const StepBuilder& step) {
  std::vector<std::size_t> layers(step.works.parameters(), 0);
  for (std::size_t layer = 0; layer < step.works.layers.size(); ++layer)
    for (const auto& completed : step.works.layers[layer].completes)
      for (const std::int32_t each : completed) layers[at(each)] = layer;
  return layers;
}

/// Which parameters each has, and where in the passes it begins and ends.
std::vector<ShardedUnit> made_units(const StepBuilder& step) {
  std::vector<std::vector<std::int32_t>> given = step.training.units;
  if (given.empty()) given = block_units(step.works.names);
  std::vector<bool> taken(step.works.parameters(), false);
  const std::vector<std::size_t> layers = layers_of_parameters(step);
  std::vector<ShardedUnit> units, others;
  for (std::vector<std::int32_t>& each : given) {
    ShardedUnit& unit = others.emplace_back();
    unit.parameters = std::move(each);
    for (const std::int32_t parameter : unit.parameters) taken[at(parameter)] = true;
    std::vector<std::size_t> mine;
    for (const std::int32_t parameter : unit.parameters)
      if (!step.unused(parameter)) mine.push_back(layers[at(parameter)]);
    if (mine.empty()) mine.push_back(0);
    unit.first = std::ranges::min(mine);
    unit.last = std::ranges::max(mine);
  }
  std::ranges::stable_sort(others, {}, &ShardedUnit::first);
  ShardedUnit root;
  root.is_root = true;
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) root.parameters.push_back(static_cast<std::int32_t>(i));
  if (!root.parameters.empty()) units.push_back(std::move(root));
  for (ShardedUnit& unit : others) units.push_back(std::move(unit));
  const std::size_t first_gradient = first_layer_with_gradients(step);
  for (std::size_t u = 0; u < units.size(); ++u) {
    ShardedUnit& unit = units[u];
    unit.number = static_cast<std::int32_t>(u);
    unit.resharded = step.training.reshard_after_forward.value_or(!unit.is_root);
    unit.is_late = unit.is_root || unit.first <= first_gradient;
    unit.reduced = step.used(unit.parameters);
  }
  return units;
}

std::vector<Slice> places(const Slice& packed, const std::vector<std::int64_t>& lengths) {
  std::vector<Slice> places;
  std::int64_t begin = 0;
  for (const std::int64_t each : lengths) {
    places.push_back({packed.buffer, program::nowhere, begin, each});
    begin += each;
  }
  return places;
}

void lay_out(StepBuilder& step, std::int32_t ranks, std::int32_t group, ShardedUnit& unit) {
  program::JobMemory& memory = step.writer.memory;
  const std::int16_t all = step.writer.communicator(0, group);
  unit.kept = step.memory.kept_type(unit.parameters.front());
  unit.whole = step.memory.type(unit.parameters.front());
  unit.sent = step.training.mp_policy.reduce_dtype.value_or(unit.whole);
  std::vector<std::int64_t> lengths;
  for (const std::int32_t each : unit.parameters) {
    if (step.memory.kept_type(each) != unit.kept)
      check(Refusal{"training.units",
                    fmt::format("{} is {}, and {} in the same unit is {}: a unit of fully_shard "
                                "has one type",
                                step.works.names[at(each)], name_of(step.memory.kept_type(each)),
                                step.works.names[at(unit.parameters.front())], name_of(unit.kept)),
                    {}});
    const MatrixShape& shape = step.works.matrices[at(each)];
    lengths.push_back(parts_of(shape.rows, ranks) * shape.columns);
    step.memory.shard(each, lengths.back(), all);
    unit.size += step.works.gradients[at(each)].size;
  }
  const std::int64_t length = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  unit.gathered = memory.add("gathered", unit.number, program::Holds::gathered, unit.whole,
                             ranks * length, program::Life::held);
  unit.part = {unit.gathered.buffer, all, 0, length};
  unit.places = memory.list(places(unit.gathered, lengths));
  if (unit.whole != unit.kept)
    unit.cast_parts = memory.add("cast parts", unit.number, program::Holds::gathered, unit.whole,
                                 length, program::Life::held);
  if (unit.reduced.empty()) return;
  std::vector<std::int64_t> reduced;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (!step.unused(unit.parameters[i])) reduced.push_back(lengths[i]);
  const std::int64_t sent = std::accumulate(reduced.begin(), reduced.end(), std::int64_t{0});
  unit.scattered = memory.add("scattered", unit.number, program::Holds::scattered, unit.sent,
                              ranks * sent, program::Life::held);
  unit.scatter_places = memory.list(places(unit.scattered, reduced));
  if (unit.sent != unit.kept)
    unit.received = memory.add("received", unit.number, program::Holds::scattered, unit.sent, sent,
                               program::Life::held);
  unit.gradient = memory.add("shard", unit.number, program::Holds::gradient, unit.kept, sent,
                             program::Life::step);
  if (step.training.micro_batches > 1 && !step.training.no_sync)
    unit.partial = memory.add("part", unit.number, program::Holds::gradient, unit.kept, sent,
                              program::Life::step);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    step.memory.set_shard_gradient(unit.reduced[i],
                                   {unit.gradient.buffer, program::nowhere, begin, reduced[i]});
    begin += reduced[i];
  }
}

}  // namespace

void check_fully_shard(const StepBuilder& step) {
  check(fully_shard_refusal(step.works, step.training, step.writer.device));
}

std::vector<ShardedUnit> sharded_units(StepBuilder& step, std::int32_t ranks, std::int32_t group) {
  std::vector<ShardedUnit> units = made_units(step);
  for (ShardedUnit& unit : units) lay_out(step, ranks, group, unit);
  return units;
}

std::string name_of(const StepBuilder& step, const ShardedUnit& unit) {
  if (unit.is_root) return "the root";
  const std::string& first = step.works.names[at(unit.parameters.front())];
  const std::string block = block_of(first);
  return block.empty() ? first.substr(0, first.rfind('.')) : block;
}

}  // namespace ddpsim
