#include "model/parallel/policy/fsdp1_layout.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/parallel/policy/fsdp_made_units.hpp"
#include "model/parallel/policy/refusals.hpp"

namespace ddpsim {
namespace {

using program::Holds;
using program::Life;
using program::Slice;
using program::Start;

/// With use_orig_params parameters begin at a multiple of so many bytes.
constexpr std::int64_t address_alignment = 16;

constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

std::int64_t elements_of(const StepBuilder& step, const UnitMember& member) {
  if (member.frozen == nobody) return step.memory.elements(member.parameter);
  const MatrixShape shape = matrix_of(step.works.frozen[at(member.frozen)].shape);
  return shape.rows * shape.columns;
}

/// A flat parameter has one type, and is trained as a whole or not at all.
void check_alike(const StepBuilder& step, const std::vector<UnitMember>& members) {
  const UnitMember& first = members.front();
  for (const UnitMember& each : members) {
    if (kept_type(step, each) != kept_type(step, first))
      check(Refusal{"training.units",
                    fmt::format("{} is {}, and {} in the same unit is {}: a unit of "
                                "FullyShardedDataParallel has one type",
                                name_of(step, each), name_of(kept_type(step, each)),
                                name_of(step, first), name_of(kept_type(step, first))),
                    {}});
    if ((each.frozen == nobody) != (first.frozen == nobody))
      check(Refusal{"training.units",
                    fmt::format("{} is frozen and {} in the same unit is trained: "
                                "FullyShardedDataParallel refuses that, or under use_orig_params "
                                "makes gradients of both, which is not modelled; write units of "
                                "their own",
                                name_of(step, each.frozen == nobody ? first : each),
                                name_of(step, each.frozen == nobody ? each : first)),
                    {}});
  }
}

/// Where parameters lie in the flat one, and its length.
struct FlatPlaces {
  std::vector<std::int64_t> begins;  ///< [member]
  std::int64_t length = 0;
};

FlatPlaces places_of(const StepBuilder& step, const std::vector<UnitMember>& members,
                     std::int32_t ranks, DType whole) {
  const bool aligns = step.training.fsdp.use_orig_params;
  const std::int64_t align = aligns ? address_alignment / size_of(whole).count : 1;
  FlatPlaces places;
  for (const UnitMember& each : members) {
    places.begins.push_back(rounded_up(places.length, align));
    places.length = places.begins.back() + elements_of(step, each);
  }
  if (aligns) places.length = rounded_up(places.length, ranks);
  return places;
}

/// A unit in front of all that is trained has no backward pass to be freed behind. The callback
/// that frees what was left takes it for freed, but under use_orig_params.
bool stays_whole(const FsdpVariantSettings& settings, const ShardedUnit& unit) {
  return !unit.has_backward && !settings.use_orig_params &&
         !frees_after_forward(settings.sharding_strategy);
}

class UnitLayout {
 public:
  UnitLayout(StepBuilder& step, std::int32_t ranks, std::int16_t all)
      : step_(step), memory_(step.writer.memory), ranks_(ranks), all_(all) {}

  FlatUnit lay_out(const ShardedUnit& made) {
    check_alike(step_, made.members);
    FlatUnit unit;
    unit.number = made.number;
    unit.is_root = made.is_root;
    unit.has_backward = made.has_backward;
    unit.stays_whole = stays_whole(step_.training.fsdp, made);
    std::vector<std::size_t> layers;  // where one is that gets no gradient nobody knows
    for (const UnitMember& each : made.members)
      if (each.parameter == nobody || !step_.unused(each.parameter))
        layers.push_back(layer_of(each));
    if (layers.empty()) layers.push_back(0);
    unit.first = std::ranges::min(layers);
    unit.last = std::ranges::max(layers);
    unit.used = made.reduced;
    const UnitMember& first = made.members.front();
    const bool is_frozen = first.frozen != nobody;
    unit.kept = kept_type(step_, first);
    unit.whole_type = is_frozen ? step_.training.mp_policy.param_dtype.value_or(unit.kept)
                                : step_.memory.type(first.parameter);
    unit.sent = step_.training.mp_policy.reduce_dtype.value_or(unit.whole_type);
    const FlatPlaces places = places_of(step_, made.members, ranks_, unit.whole_type);
    lay_out_parameters(made.members, places, unit);
    if (!unit.used.empty()) lay_out_gradients(made.members, places, unit);
    return unit;
  }

 private:
  std::size_t layer_of(const UnitMember& member) const {
    return member.frozen == nobody ? step_.works.uses[at(member.parameter)].layer
                                   : at(step_.works.frozen[at(member.frozen)].layer);
  }
  Slice add(const FlatUnit& unit, std::string_view name, Holds holds, DType type,
            std::int64_t elements, Life life = Life::held, Start start = Start::undefined) {
    return memory_.add(name, unit.number, holds, type, elements, life, start);
  }

  void lay_out_parameters(const std::vector<UnitMember>& members, const FlatPlaces& places,
                          FlatUnit& unit) {
    const std::int64_t length = rounded_up(places.length, ranks_) / ranks_;
    const bool is_frozen = members.front().frozen != nobody;
    unit.part = add(unit, "flat part", is_frozen ? Holds::frozen : Holds::parameter, unit.kept,
                    length, Life::job, Start::zeros);
    if (unit.kept != unit.whole_type)
      unit.cast_part = add(unit, "cast part", Holds::gathered, unit.whole_type, length);
    unit.whole[0] = unit.stays_whole
                        ? add(unit, "flat", Holds::parameter, unit.whole_type, ranks_ * length,
                              Life::job, Start::zeros)
                        : add(unit, "flat", Holds::parameter, unit.whole_type, ranks_ * length);
    unit.whole[1] = unit.whole[0];
    if (unit.has_backward && !unit.is_root &&
        frees_after_forward(step_.training.fsdp.sharding_strategy))
      unit.whole[1] = add(unit, "flat again", Holds::parameter, unit.whole_type, ranks_ * length);
    if (is_frozen) return;
    for (const UnitMember& each : members) unit.parameters.push_back(each.parameter);
    unit.begins = places.begins;
    for (std::size_t i = 0; i < members.size(); ++i)
      step_.memory.shard_in_flat(members[i].parameter, places.begins[i], unit.part, all_);
  }

  void lay_out_gradients(const std::vector<UnitMember>& members, const FlatPlaces& places,
                         FlatUnit& unit) {
    // Nothing is written where a parameter has no gradient, or between parameters.
    unit.gradient = add(unit, "flat gradient", Holds::gradient, unit.whole_type, places.length,
                        Life::held, Start::zeros);
    if (step_.training.micro_batches > 1 && step_.training.no_sync)
      unit.later = add(unit, "later flat gradient", Holds::gradient, unit.whole_type, places.length,
                       Life::held, Start::zeros);
    if (unit.sent != unit.whole_type)
      unit.cast_gradient = add(unit, "cast gradient", Holds::scattered, unit.sent, places.length);
    const std::int64_t length = unit.part.count;
    if (ranks_ * length != places.length)
      unit.padded = add(unit, "scattered", Holds::scattered, unit.sent, ranks_ * length);
    if (unit.sent != unit.kept)
      unit.received = add(unit, "received", Holds::scattered, unit.sent, length);
    unit.part_gradient = add(unit, "part gradient", Holds::gradient, unit.kept, length, Life::step);
    if (step_.training.micro_batches > 1 && !step_.training.no_sync)
      unit.later_part = add(unit, "later part", Holds::gradient, unit.kept, length);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::int32_t each = members[i].parameter;
      if (std::ranges::find(unit.used, each) == unit.used.end()) continue;
      unit.places.push_back(
          {unit.gradient.buffer, program::nowhere, places.begins[i], step_.memory.elements(each)});
      step_.memory.set_shard_gradient(each, unit.part_gradient);
    }
    step_.own_parts.push_back({unit.part, unit.part_gradient});
  }

  StepBuilder& step_;
  program::JobMemory& memory_;
  std::int32_t ranks_;
  std::int16_t all_;
};

}  // namespace

program::Origin origin_of(StepBuilder& step, const FlatUnit& unit, std::string_view label) {
  program::Origin origin;
  origin.group = unit.number;
  origin.label = step.writer.memory.label(label);
  return origin;
}

std::vector<FlatUnit> flat_units(StepBuilder& step, std::int32_t ranks, std::int32_t group) {
  std::vector<FlatUnit> units;
  UnitLayout layout(step, ranks, step.writer.communicator(0, group));
  for (ShardedUnit& made : made_units(step)) {
    // They lie as modules are walked: in the order of registration.
    std::ranges::sort(made.members, {}, [](const UnitMember& member) {
      return std::pair{member.parameter, member.frozen};
    });
    std::ranges::sort(made.reduced);
    units.push_back(layout.lay_out(made));
    for (const std::int32_t each : made.parameters)
      made.size += step.works.gradients[at(each)].size;
    step.writer.memory.job.groups.push_back({made.parameters, made.size, name_of(step, made)});
  }
  return units;
}

}  // namespace ddpsim
