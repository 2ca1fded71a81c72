#include "model/parallel/policy/fsdp_made_units.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/parallel/policy/fsdp_units.hpp"
#include "model/parallel/policy/refusals.hpp"

namespace ddpsim {
namespace {

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

const UnitSettings& settings_of(const StepBuilder& step, const ShardedUnit& unit) {
  static const UnitSettings none;
  const std::vector<UnitSettings>& all = step.training.unit_settings;
  return unit.given == nobody || all.empty() ? none : all[at(unit.given)];
}

/// F27-F30.
void give_settings(const StepBuilder& step, ShardedUnit& unit) {
  const UnitSettings& own = settings_of(step, unit);
  std::optional<Reshard> reshard = own.reshard_after_forward;
  if (!reshard) reshard = step.training.reshard_after_forward;
  const std::int32_t shards = step.writer.device.ranks / step.training.replicate;
  unit.resharded = reshard.value_or(Reshard(!unit.is_root)).frees;
  unit.neighbours = reshard && reshard->frees && reshard->ranks != shards ? reshard->ranks : 0;
  unit.unshard_in_backward = own.unshard_in_backward;
}

/// F23, F33: a unit's own lists, or as many units behind it, or before it in backward, as the
/// depths say. The root has no lists.
void give_prefetches(const StepBuilder& step, const std::vector<std::int32_t>& number_of_given,
                     std::vector<ShardedUnit>& units) {
  const auto begin = static_cast<std::int32_t>(!units.empty() && units.front().is_root ? 1 : 0);
  const auto end = static_cast<std::int32_t>(units.size());
  const auto numbers = [&](const std::vector<std::int32_t>& given) {
    std::vector<std::int32_t> found;
    for (const std::int32_t each : given) found.push_back(number_of_given[at(each)]);
    return found;
  };
  for (std::int32_t u = begin; u < end; ++u) {
    ShardedUnit& unit = units[at(u)];
    const UnitSettings& own = settings_of(step, unit);
    unit.forward_prefetch = numbers(own.forward_prefetch);
    unit.backward_prefetch = numbers(own.backward_prefetch);
    if (unit.forward_prefetch.empty())
      for (std::int32_t each = u + 1; each < end && each <= u + step.training.forward_prefetch;
           ++each)
        unit.forward_prefetch.push_back(each);
    if (unit.backward_prefetch.empty())
      for (std::int32_t each = u - 1; each >= begin && each >= u - step.training.backward_prefetch;
           --each)
        unit.backward_prefetch.push_back(each);
  }
}

/// F33: a unit that is freed and not gathered again takes no part in its backward pass.
void check_unshard_in_backward(const StepBuilder& step, const ShardedUnit& unit) {
  if (unit.unshard_in_backward || !unit.resharded) return;
  for (const StepWorks::LayerWorks& layer : step.works.layers)
    for (const std::int32_t weight : layer.weights.backward)
      if (weight != nobody && std::ranges::find(unit.parameters, weight) != unit.parameters.end())
        check(Refusal{"training.units",
                      fmt::format("with unshard_in_backward: false {} is freed behind its forward "
                                  "pass, but its backward pass multiplies with {}: take it out",
                                  name_of(step, unit), step.works.names[at(weight)]),
                      {}});
}

/// Adds a parameter of either kind by its number in the settings.
void add_member(const StepBuilder& step, std::int32_t number, ShardedUnit& unit) {
  const auto trained = static_cast<std::int32_t>(step.works.parameters());
  UnitMember& member = unit.members.emplace_back();
  if (number < trained) {
    member.parameter = number;
    unit.parameters.push_back(number);
  } else {
    member.frozen = number - trained;
  }
}

/// The layers of its members; of one that gets no gradient nobody knows.
void find_place(const StepBuilder& step, const std::vector<std::size_t>& layers,
                ShardedUnit& unit) {
  std::vector<std::size_t> mine;
  for (const UnitMember& member : unit.members)
    if (member.frozen != nobody)
      mine.push_back(at(step.works.frozen[at(member.frozen)].layer));
    else if (!step.unused(member.parameter))
      mine.push_back(layers[at(member.parameter)]);
  if (mine.empty()) mine.push_back(0);
  unit.first = std::ranges::min(mine);
  unit.last = std::ranges::max(mine);
}

/// Several units may be in the first layer that has gradients: is this the one with the gradient
/// that comes last there, or has it none there?
bool begins(const StepBuilder& step, const std::vector<std::size_t>& layers, std::size_t layer,
            const ShardedUnit& unit) {
  std::int32_t last = nobody, last_of_unit = nobody;
  for (const std::int32_t each : step.works.arrival) {
    if (step.unused(each) || layers[at(each)] != layer) continue;
    last = each;
    if (std::ranges::find(unit.parameters, each) != unit.parameters.end()) last_of_unit = each;
  }
  return last_of_unit == nobody || last_of_unit == last;
}

}  // namespace

std::vector<ShardedUnit> made_units(const StepBuilder& step) {
  std::vector<std::string> names = step.works.names;
  for (const FrozenParameter& each : step.works.frozen) names.push_back(each.name);
  std::vector<std::vector<std::int32_t>> given = step.training.units;
  if (given.empty()) given = block_units(names);
  std::vector<bool> taken(names.size(), false);
  const std::vector<std::size_t> layers = layers_of_parameters(step);
  std::vector<ShardedUnit> units, others;
  for (const std::vector<std::int32_t>& each : given) {
    ShardedUnit& unit = others.emplace_back();
    unit.given = static_cast<std::int32_t>(others.size()) - 1;
    for (const std::int32_t number : each) {
      taken[at(number)] = true;
      add_member(step, number, unit);
    }
    find_place(step, layers, unit);
  }
  std::ranges::stable_sort(others, {}, &ShardedUnit::first);
  ShardedUnit root;
  root.is_root = true;
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) add_member(step, static_cast<std::int32_t>(i), root);
  if (!root.members.empty()) units.push_back(std::move(root));
  for (ShardedUnit& unit : others) units.push_back(std::move(unit));
  std::vector<std::int32_t> number_of_given(others.size(), nobody);
  const std::size_t first_gradient = first_layer_with_gradients(step);
  for (std::size_t u = 0; u < units.size(); ++u) {
    ShardedUnit& unit = units[u];
    unit.number = static_cast<std::int32_t>(u);
    if (unit.given != nobody) number_of_given[at(unit.given)] = unit.number;
    give_settings(step, unit);
    unit.is_late = unit.is_root || unit.first < first_gradient ||
                   (unit.first == first_gradient && begins(step, layers, first_gradient, unit));
    unit.has_backward = unit.is_root || unit.last >= first_gradient;
    unit.reduced = step.used(unit.parameters);
  }
  give_prefetches(step, number_of_given, units);
  for (const ShardedUnit& unit : units) check_unshard_in_backward(step, unit);
  return units;
}

}  // namespace ddpsim
