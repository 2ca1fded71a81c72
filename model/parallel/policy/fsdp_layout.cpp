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

/// Which parameters each has, and where in the passes it begins and ends.
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

std::vector<Slice> places(const Slice& packed, const std::vector<std::int64_t>& lengths) {
  std::vector<Slice> places;
  std::int64_t begin = 0;
  for (const std::int64_t each : lengths) {
    places.push_back({packed.buffer, program::nowhere, begin, each});
    begin += each;
  }
  return places;
}

/// The type that a member is kept in.
DType kept_type(const StepBuilder& step, const UnitMember& member) {
  return member.frozen == nobody ? step.memory.kept_type(member.parameter)
                                 : stored_type(step.works.frozen[at(member.frozen)].dtype);
}
const std::string& name_of(const StepBuilder& step, const UnitMember& member) {
  return member.frozen == nobody ? step.works.names[at(member.parameter)]
                                 : step.works.frozen[at(member.frozen)].name;
}

/// The types of a unit, of which fully_shard allows one for what is trained (F4), and which gathers
/// bytes where whole parameters are of several (F14).
void find_types(const StepBuilder& step, ShardedUnit& unit) {
  const auto whole_type = [&](const UnitMember& member) {
    if (member.frozen == nobody) return step.memory.type(member.parameter);
    return step.training.mp_policy.param_dtype.value_or(kept_type(step, member));
  };
  const UnitMember& first = unit.members.front();
  unit.kept = kept_type(step, first);
  unit.whole = whole_type(first);
  unit.sent = step.training.mp_policy.reduce_dtype.value_or(unit.whole);
  for (const UnitMember& member : unit.members) {
    if (member.frozen == nobody && kept_type(step, member) != unit.kept)
      check(Refusal{"training.units",
                    fmt::format("{} is {}, and {} in the same unit is {}: a unit of fully_shard "
                                "has one type",
                                name_of(step, member), name_of(kept_type(step, member)),
                                name_of(step, first), name_of(unit.kept)),
                    {}});
    if (whole_type(member) != unit.whole)
      check(
          Refusal{"training.units",
                  fmt::format("{} is {}, and {} in the same unit is {}, which fully_shard gathers "
                              "as bytes: that is not modelled; write mp_policy.param_dtype, or "
                              "units of their own",
                              name_of(step, member), name_of(whole_type(member)),
                              name_of(step, first), name_of(unit.whole)),
                  {}});
  }
}

/// F67: with CPU offload.
void keep_on_host(StepBuilder& step, UnitMember& member) {
  if (!step.training.offload_policy) return;
  program::JobMemory& memory = step.writer.memory;
  program::Buffer& part = memory.job.buffers[member.part.buffer];
  part.place = program::Place::host;
  const auto [index, type] = std::pair{part.index, part.type};
  member.on_device = memory.add("part on the device", index, program::Holds::gathered, type,
                                member.length, program::Life::held);
}

/// The rank's part of a member, and the whole of it.
void lay_out_member(StepBuilder& step, std::int32_t ranks, std::int16_t all,
                    const ShardedUnit& unit, UnitMember& member) {
  program::JobMemory& memory = step.writer.memory;
  const auto length = [&](const MatrixShape& shape) {
    return parts_of(shape.rows, ranks) * shape.columns;
  };
  if (member.frozen == nobody) {
    member.length = length(step.works.matrices[at(member.parameter)]);
    step.memory.shard(member.parameter, member.length, all, ranks * member.length);
    member.part = step.memory.shard_of(member.parameter);
    member.whole = step.memory.padded_weight(member.parameter);
    keep_on_host(step, member);
    return;
  }
  member.length = length(matrix_of(step.works.frozen[at(member.frozen)].shape));
  member.part =
      memory.add("frozen part", member.frozen, program::Holds::frozen, kept_type(step, member),
                 member.length, program::Life::job, program::Start::zeros);
  member.whole = memory.add("frozen", member.frozen, program::Holds::parameter, unit.whole,
                            ranks * member.length, program::Life::held);
  keep_on_host(step, member);
}

/// F30: of whole parameters, padding and all, each of some ranks next to each other keeps a part.
void lay_out_for_neighbours(StepBuilder& step, std::int32_t ranks, ShardedUnit& unit) {
  program::JobMemory& memory = step.writer.memory;
  const std::int16_t among = step.writer.communicator(queue_of_neighbours(step), unit.neighbours);
  std::vector<std::int64_t> lengths;
  for (UnitMember& member : unit.members) {
    lengths.push_back(member.length * ranks / unit.neighbours);
    member.for_neighbours = memory.add(
        "part for neighbours", member.frozen == nobody ? member.parameter : member.frozen,
        member.frozen == nobody ? program::Holds::parameter : program::Holds::frozen, unit.whole,
        lengths.back(), program::Life::held);
  }
  const std::int64_t length = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  unit.neighbours_part = {unit.gathered.buffer, among, 0, length};
  unit.neighbours_places = memory.list(places(unit.gathered, lengths));
  if (!unit.cast_parts.empty())  // PyTorch copies where it would cast
    unit.copied_parts = memory.add("copied parts", unit.number, program::Holds::gathered,
                                   unit.whole, length, program::Life::held);
}

void lay_out_gather(StepBuilder& step, std::int32_t ranks, std::int32_t group, ShardedUnit& unit) {
  program::JobMemory& memory = step.writer.memory;
  const std::int16_t all = step.writer.communicator(0, group);
  std::vector<std::int64_t> lengths;
  std::int64_t cast = 0;
  for (UnitMember& member : unit.members) {
    lay_out_member(step, ranks, all, unit, member);
    lengths.push_back(member.length);
    if (kept_type(step, member) != unit.whole) cast += member.length;
  }
  for (const std::int32_t each : unit.parameters) unit.size += step.works.gradients[at(each)].size;
  const std::int64_t length = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  unit.gathered = memory.add("gathered", unit.number, program::Holds::gathered, unit.whole,
                             ranks * length, program::Life::held);
  unit.part = {unit.gathered.buffer, all, 0, length};
  unit.places = memory.list(places(unit.gathered, lengths));
  if (cast > 0)
    unit.cast_parts = memory.add("cast parts", unit.number, program::Holds::gathered, unit.whole,
                                 cast, program::Life::held);
  if (unit.neighbours != 0) lay_out_for_neighbours(step, ranks, unit);
}

void lay_out_scatter(StepBuilder& step, std::int32_t ranks, ShardedUnit& unit) {
  if (unit.reduced.empty()) return;
  program::JobMemory& memory = step.writer.memory;
  std::vector<std::int64_t> reduced;
  for (const UnitMember& member : unit.members)
    if (member.frozen == nobody && !step.unused(member.parameter)) reduced.push_back(member.length);
  const std::int64_t sent = std::accumulate(reduced.begin(), reduced.end(), std::int64_t{0});
  unit.scattered = memory.add("scattered", unit.number, program::Holds::scattered, unit.sent,
                              ranks * sent, program::Life::held);
  unit.scatter_places = memory.list(places(unit.scattered, reduced));
  if (unit.sent != unit.kept)
    unit.received = memory.add("received", unit.number, program::Holds::scattered, unit.sent, sent,
                               program::Life::held);
  const bool offloads = step.training.offload_policy.has_value();
  unit.gradient = memory.add("shard", unit.number, program::Holds::gradient, unit.kept, sent,
                             offloads ? program::Life::held : program::Life::step);
  if (offloads) {
    unit.gradient_on_host =
        memory.add("shard on the host", unit.number, program::Holds::gradient, unit.kept, sent);
    memory.job.buffers.back().place = program::Place::host;
  }
  if (step.training.sums_before_all_reduce())
    unit.summed = memory.add("sum of parts", unit.number, program::Holds::gradient, unit.sent, sent,
                             program::Life::step);
  if (step.training.micro_batches > 1 && !step.training.no_sync)
    unit.partial = memory.add("part", unit.number, program::Holds::gradient, unit.kept, sent,
                              program::Life::step);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    const Slice& gradient = offloads ? unit.gradient_on_host : unit.gradient;
    step.memory.set_shard_gradient(unit.reduced[i],
                                   {gradient.buffer, program::nowhere, begin, reduced[i]});
    begin += reduced[i];
  }
}

void check_offload(const StepBuilder& step) {
  const auto check_not = [](bool wrong, std::string reason) {
    if (wrong) check(Refusal{"training.offload_policy", std::move(reason), {}});
  };
  check_not(step.writer.device.synchronous,
            "a CPU's memory is the host's, and there is nothing to offload: take it out");
  check_not(step.training.micro_batches > 1 && !step.training.no_sync,
            "gradients of several micro-batches are added up on the host, which is not modelled: "
            "write no_sync: true");
  check_not(step.works.clips_gradients,
            "the norm of gradients that are on the host is not modelled: take "
            "workload.clip_gradients out");
}

}  // namespace

std::uint8_t queue_of_scatters(const StepBuilder& step) {
  return step.training.separate_reduce_scatter_group ? 1 : 0;
}
std::uint8_t queue_of_replicas(const StepBuilder& step) {
  return static_cast<std::uint8_t>(queue_of_scatters(step) + 1);
}
std::uint8_t queue_of_neighbours(const StepBuilder& step) {
  return static_cast<std::uint8_t>(queue_of_scatters(step) + (step.training.replicate > 1 ? 2 : 1));
}

std::optional<Refusal> mesh_refusal(const Training& training, int ranks) {
  const int replicas = training.replicate;
  if (ranks % replicas != 0)
    return Refusal{"training.replicate",
                   fmt::format("{} ranks cannot be {} replicas of as many ranks each: expected a "
                               "divisor of {}",
                               ranks, replicas, ranks),
                   {}};
  if (replicas > 1 && replicas == ranks)
    return Refusal{"training.replicate",
                   fmt::format("{} replicas on {} ranks leave nothing to shard: take fewer, or "
                               "strategy bucketed",
                               replicas, ranks),
                   {}};
  const int shards = ranks / replicas;
  const auto neighbours = [&](const std::optional<Reshard>& reshard,
                              const char* key) -> std::optional<Refusal> {
    if (!reshard || !reshard->frees || reshard->ranks == 0 || shards % reshard->ranks == 0)
      return std::nullopt;
    return Refusal{key,
                   fmt::format("{} ranks that share parameters cannot be groups of {}: expected a "
                               "divisor of {}",
                               shards, reshard->ranks, shards),
                   {}};
  };
  if (auto refusal = neighbours(training.reshard_after_forward, "training.reshard_after_forward"))
    return refusal;
  for (const UnitSettings& each : training.unit_settings)
    if (auto refusal = neighbours(each.reshard_after_forward, "training.units")) return refusal;
  return std::nullopt;
}

void check_fully_shard(const StepBuilder& step) {
  const auto check_not = [](bool wrong, std::string reason) {
    if (wrong) check(Refusal{"training.strategy", std::move(reason), {}});
  };
  check_not(step.writer.device.through_host,
            "fsdp is modelled where collectives run on the devices, not on the hosts: take "
            "device.through_host out");
  for (std::size_t i = 0; i < step.works.parameters(); ++i)
    check_not(step.works.gradients[i].sparse,
              fmt::format("the gradient of {} is sparse, and fully_shard takes dense ones: take "
                          "the parameter's sparse: true out",
                          step.works.names[i].substr(0, 200)));
  check(mesh_refusal(step.training, step.writer.device.ranks));
  if (step.training.offload_policy) check_offload(step);
  for (const UserHook& hook : step.training.hooks)
    if (!hook.groups.empty())
      check(Refusal{"training.hooks",
                    fmt::format("hook {} is on gradients, and under fully_shard no such hook ever "
                                "fires: take it out (chunks, on a layer's output, do)",
                                label(hook)),
                    {}});
  check_not(step.training.join.has_value(), "fully_shard has no join(): take training.join out");
}

std::vector<ShardedUnit> sharded_units(StepBuilder& step, std::int32_t ranks, std::int32_t group) {
  std::vector<ShardedUnit> units = made_units(step);
  for (ShardedUnit& unit : units) {
    find_types(step, unit);
    lay_out_gather(step, ranks, group, unit);
    lay_out_scatter(step, ranks, unit);
  }
  return units;
}

std::string name_of(const StepBuilder& step, const ShardedUnit& unit) {
  if (unit.is_root) return "the root";
  const std::string& first = name_of(step, unit.members.front());
  const std::string block = block_of(first);
  return block.empty() ? first.substr(0, first.rfind('.')) : block;
}

}  // namespace ddpsim
