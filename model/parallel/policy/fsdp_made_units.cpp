#include "model/parallel/policy/fsdp_made_units.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/parallel/policy/fsdp_units.hpp"
#include "model/parallel/policy/refusals.hpp"

namespace ddpsim {
namespace {

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
    if (own.forward_prefetch) unit.forward_prefetch = numbers(*own.forward_prefetch);
    if (own.backward_prefetch) unit.backward_prefetch = numbers(*own.backward_prefetch);
    if (!own.forward_prefetch)
      for (std::int32_t each = u + 1; each < end && each <= u + step.training.forward_prefetch;
           ++each)
        unit.forward_prefetch.push_back(each);
    if (!own.backward_prefetch)
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

std::int32_t depth_of(const ShardedUnit& unit) {
  std::int32_t least = 0;
  for (std::size_t m = 0; m < unit.modules.size(); ++m) {
    const auto around = static_cast<std::int32_t>(std::ranges::count(unit.modules[m], '.'));
    least = m == 0 ? around : std::min(least, around);
  }
  return least;
}

/// Finds where units are in the passes: with all that is in their modules, whatever call took it.
class UnitPlaces {
 public:
  /// `units`, none of them the root's, must outlive this object.
  UnitPlaces(const StepBuilder& step, std::vector<ShardedUnit>& units)
      : works_(step.works),
        units_(units),
        insides_(units.size()),
        in_layer_(works_.layers.size(), 0) {
    const auto completes_any = [](const StepWorks::LayerWorks& layer) {
      return std::ranges::any_of(layer.completes, [](const auto& each) { return !each.empty(); });
    };
    const auto first = std::ranges::find_if(works_.layers, completes_any);
    first_gradient_ = static_cast<std::size_t>(first - works_.layers.begin());
    for (const std::int32_t each : works_.arrival)
      if (!step.unused(each) && works_.uses[at(each)].layer == first_gradient_) last_ = each;
    for (std::size_t u = 0; u < units.size(); ++u)
      for (const std::string& module : units[u].modules) units_of_[module].push_back(u);
    find_insides(step);
  }

  void find() {
    for (std::size_t u = 0; u < units_.size(); ++u) find(units_[u], insides_[u]);
  }

 private:
  /// A parameter that is in a unit's modules. Where one is that gets no gradient nobody knows.
  struct Inside {
    const ParameterUse* use = nullptr;
    std::int32_t parameter = nobody;  ///< nobody: it is frozen
  };

  void find_insides(const StepBuilder& step) {
    std::vector<std::size_t> trained(works_.parameters(), units_.size());
    std::vector<std::size_t> frozen(works_.frozen.size(), units_.size());
    for (std::size_t u = 0; u < units_.size(); ++u)
      for (const UnitMember& each : units_[u].members)
        (each.frozen == nobody ? trained[at(each.parameter)] : frozen[at(each.frozen)]) = u;
    for (std::size_t p = 0; p < trained.size(); ++p)
      if (const auto parameter = static_cast<std::int32_t>(p); !step.unused(parameter))
        add(works_.names[p], trained[p], {&works_.uses[p], parameter});
    for (std::size_t f = 0; f < frozen.size(); ++f)
      add(works_.frozen[f].name, frozen[f], {&works_.frozen_uses[f], nobody});
  }

  /// To the unit that has it, and to those of modules around it.
  void add(std::string_view name, std::size_t owner, const Inside& inside) {
    ++in_layer_[inside.use->layer];
    if (owner < units_.size()) insides_[owner].push_back(inside);
    for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
         dot = name.find('.', dot + 1))
      if (const auto found = units_of_.find(name.substr(0, dot)); found != units_of_.end())
        for (const std::size_t unit : found->second)
          if (unit != owner) insides_[unit].push_back(inside);
  }

  void find(ShardedUnit& unit, const std::vector<Inside>& insides) const {
    std::size_t first = works_.layers.size(), last = 0;
    bool is_first = true, has_gradient = false, has_last = false;
    for (const Inside& each : insides) {
      first = std::min(first, each.use->layer);
      last = std::max(last, each.use->layer);
      if (std::exchange(is_first, false)) {
        unit.forward = each.use->forward;
        unit.backward = each.use->backward;
      }
      extend(unit.forward, each.use->forward);
      extend(unit.backward, each.use->backward);
      if (each.parameter == nobody || each.use->layer != first_gradient_) continue;
      has_gradient = true;
      has_last = has_last || each.parameter == last_;
    }
    first = std::min(first, last);
    if (has_all_of(insides, first)) {
      unit.forward.first = works_.layers[first].forward_kernels.first;
      unit.backward.last = works_.layers[first].backward_kernels.last;
    }
    if (has_all_of(insides, last)) {
      unit.forward.last = works_.layers[last].forward_kernels.last;
      unit.backward.first = works_.layers[last].backward_kernels.first;
    }
    // Several units may be in the first layer that has gradients: the one whose gradient comes last
    // there gets inputs that need none.
    unit.is_late =
        first < first_gradient_ || (first == first_gradient_ && (has_last || !has_gradient));
    unit.has_backward = last >= first_gradient_;
  }

  static void extend(KernelRange& range, const KernelRange& by) {
    range.first = std::min(range.first, by.first);
    range.last = std::max(range.last, by.last);
  }

  /// Then the unit's passes are those of the layer there, with what has no parameters.
  bool has_all_of(const std::vector<Inside>& insides, std::size_t layer) const {
    return insides.empty() || std::ranges::count(insides, layer, [](const Inside& each) {
                                return each.use->layer;
                              }) == in_layer_[layer];
  }

  const StepWorks& works_;
  std::vector<ShardedUnit>& units_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> units_of_;  ///< [module]
  std::vector<std::vector<Inside>> insides_;                               ///< [unit]
  std::vector<std::ptrdiff_t> in_layer_;  ///< parameters that are known to be there
  std::size_t first_gradient_ = 0;        ///< the first layer that has any
  std::int32_t last_ = nobody;            ///< the gradient that comes last there
};

}  // namespace

std::vector<ShardedUnit> made_units(const StepBuilder& step) {
  std::vector<std::string> names = step.works.names;
  for (const FrozenParameter& each : step.works.frozen) names.push_back(each.name);
  std::vector<std::vector<std::int32_t>> given = step.training.units;
  std::vector<std::vector<std::string>> modules = step.training.unit_modules;
  if (given.empty()) {
    given = block_units(names);
    modules.clear();
    for (const auto& each : given) modules.push_back({block_of(names[at(each.front())])});
  }
  std::vector<bool> taken(names.size(), false);
  std::vector<ShardedUnit> units, others;
  for (std::size_t g = 0; g < given.size(); ++g) {
    ShardedUnit& unit = others.emplace_back();
    unit.given = static_cast<std::int32_t>(g);
    if (!modules.empty()) unit.modules = modules[g];
    unit.depth = depth_of(unit);
    for (const std::int32_t number : given[g]) {
      taken[at(number)] = true;
      add_member(step, number, unit);
    }
  }
  UnitPlaces(step, others).find();
  std::ranges::stable_sort(others, {}, [](const ShardedUnit& each) {
    return std::pair(each.forward.first, each.depth);
  });
  ShardedUnit root;
  root.is_root = root.is_late = true;
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) add_member(step, static_cast<std::int32_t>(i), root);
  if (!root.members.empty()) units.push_back(std::move(root));
  for (ShardedUnit& unit : others) units.push_back(std::move(unit));
  std::vector<std::int32_t> number_of_given(others.size(), nobody);
  for (std::size_t u = 0; u < units.size(); ++u) {
    ShardedUnit& unit = units[u];
    unit.number = static_cast<std::int32_t>(u);
    if (unit.given != nobody) number_of_given[at(unit.given)] = unit.number;
    give_settings(step, unit);
    unit.reduced = step.used(unit.parameters);
  }
  give_prefetches(step, number_of_given, units);
  for (const ShardedUnit& unit : units) check_unshard_in_backward(step, unit);
  return units;
}

}  // namespace ddpsim
