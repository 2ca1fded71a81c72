// How to shard by fully_shard. There are few settings, and each has few values that differ, so all
// combinations are tried:
//
//     blocks a unit     1, 2, 3, 4, 8, 16, ... up to all blocks of one list
//     head              what the root has behind the last block: with it, or a unit of its own
//     reshard           auto (all units but the root), true, false
//     inputs            1 or 2 held of reduce-scatters
//     communicator      that of all-gathers, or one of their own, for reduce-scatters
//     replicas          1; divisors of the number of nodes: whole nodes; the scenario's
//
// Explicit prefetches of 1, 2 or 3 units, forward and backward, are tried with the best of these
// alone: they move when the host issues a gather, and change little else.

#include "model/ways/fsdp_ways.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model/base/index.hpp"
#include "model/parallel/policy/fsdp_units.hpp"

namespace ddpsim {
namespace {

using Units = std::vector<std::vector<std::int32_t>>;

/// "layers." of "layers.3": blocks of one list have it in common.
std::string list_of(const std::string& block) {
  return block.substr(0, block.rfind('.') + 1);  // npos + 1 is 0
}

/// Ways to put the blocks of a network into units.
class Blocks {
 public:
  explicit Blocks(const Workload& workload) {
    const std::vector<std::string> names = names_for_units(workload);
    const std::size_t trained = workload.parameters.size();
    const auto layer_of = [&](std::size_t each) {
      return each < trained ? workload.parameters[each].layer
                            : workload.frozen_parameters[each - trained].layer;
    };
    for (std::vector<std::int32_t>& block : block_units(names)) {
      const std::string list = list_of(block_of(names[at(block.front())]));
      if (lists_.empty() || lists_.back().first != list) lists_.push_back({list, {}});
      lists_.back().second.push_back(std::move(block));
    }
    int last = -1;
    std::set<std::int32_t> taken;
    for (const auto& [list, blocks] : lists_)
      for (const auto& block : blocks)
        for (const std::int32_t each : block) {
          taken.insert(each);
          last = std::max(last, layer_of(at(each)));
        }
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const auto each = static_cast<std::int32_t>(i);
          last >= 0 && !taken.contains(each) && layer_of(i) > last &&
          (i >= trained || !workload.parameters[i].unused) &&
          names[i].find('.') != std::string::npos)
        head_.push_back(each);
  }

  bool has_head() const { return !head_.empty(); }

  /// How many blocks next to each other might be a unit.
  std::vector<int> sizes() const {
    int longest = 0;
    for (const auto& [list, blocks] : lists_)
      longest = std::max(longest, static_cast<int>(blocks.size()));
    std::vector<int> sizes;
    for (int size = 1; size < longest; size = size < 4 ? size + 1 : 2 * size) sizes.push_back(size);
    if (longest > 0) sizes.push_back(longest);
    return sizes;
  }

  /// As the settings of a training have them: none where they are what it does by itself.
  Units units(int size, bool own_head) const {
    if (size == 1 && !own_head) return {};
    Units units;
    for (const auto& [list, blocks] : lists_)
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % static_cast<std::size_t>(size) == 0) units.emplace_back();
        units.back().insert(units.back().end(), blocks[i].begin(), blocks[i].end());
      }
    for (std::vector<std::int32_t>& unit : units) std::ranges::sort(unit);
    if (own_head) units.push_back(head_);
    return units;
  }

 private:
  std::vector<std::pair<std::string, Units>> lists_;  ///< the blocks of each list
  std::vector<std::int32_t> head_;
};

/// Numbers of replicas, each of whole nodes, and the scenario's.
std::vector<int> replicas_of(const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  std::set<int> replicas{1, scenario.training.replicate};
  if (cluster.ranks_per_node.equal() && cluster.ranks() > cluster.nodes)
    for (const int each : {2, cluster.nodes / 2, cluster.nodes})
      if (each > 1 && cluster.nodes % each == 0) replicas.insert(each);
  return {replicas.begin(), replicas.end()};
}

}  // namespace

std::vector<WayToShard> fsdp_ways(const Scenario& scenario) {
  const Blocks blocks(scenario.workload);
  Training base = scenario.training;
  base.iteration = 0;
  base.forward_prefetch = base.backward_prefetch = 0;
  struct Wrapping {
    int blocks = 0;  ///< 0: the scenario's own units
    bool own_head = false;
    Units units{};
    std::vector<UnitSettings> settings{};
  };
  std::vector<Wrapping> wrappings;
  for (const int size : blocks.sizes())
    for (const bool own_head : {false, true})
      if (!own_head || blocks.has_head())
        wrappings.push_back({size, own_head, blocks.units(size, own_head)});
  if (wrappings.empty()) wrappings.push_back({.blocks = 1});  // all parameters are the root's
  const bool is_other = std::ranges::none_of(
      wrappings, [&](const Wrapping& each) { return each.units == base.units; });
  if (is_other) wrappings.push_back({.units = base.units});
  if (!base.unit_settings.empty())
    wrappings.push_back({.units = base.units, .settings = base.unit_settings});
  const std::set<int> held{1, 2, base.reduce_scatter_max_input_buffers};
  std::vector<bool> groups{false};
  if (!scenario.cluster.device.synchronous || base.separate_reduce_scatter_group)
    groups.push_back(true);
  std::vector<std::optional<Reshard>> reshards{std::nullopt, Reshard(true), Reshard(false)};
  if (std::ranges::find(reshards, base.reshard_after_forward) == reshards.end())
    reshards.push_back(base.reshard_after_forward);
  std::vector<WayToShard> all;
  for (const Wrapping& wrapping : wrappings)
    for (const int replicate : replicas_of(scenario))
      for (const std::optional<Reshard>& reshard : reshards)
        for (const int inputs : held)
          for (const bool separate : groups) {
            WayToShard& made = all.emplace_back();
            made.blocks = wrapping.blocks;
            made.own_head = wrapping.own_head;
            made.training = base;
            made.training.units = wrapping.units;
            made.training.unit_settings = wrapping.settings;
            if (wrapping.units != base.units) made.training.unit_modules.clear();
            made.training.replicate = replicate;
            made.training.reshard_after_forward = reshard;
            made.training.reduce_scatter_max_input_buffers = inputs;
            made.training.separate_reduce_scatter_group = separate;
          }
  const FsdpSettings& given = scenario.training;
  if (given.forward_prefetch + given.backward_prefetch == 0) return all;
  const auto as_given = std::ranges::find_if(all, [&](const WayToShard& each) {
    FsdpSettings settings = each.training;
    settings.forward_prefetch = given.forward_prefetch;
    settings.backward_prefetch = given.backward_prefetch;
    return is_same_fsdp(settings, given);
  });
  WayToShard own = *as_given;
  own.training.forward_prefetch = given.forward_prefetch;
  own.training.backward_prefetch = given.backward_prefetch;
  all.push_back(std::move(own));
  return all;
}

std::vector<WayToShard> with_prefetches(const Scenario& scenario, const WayToShard& way) {
  const Training &given = scenario.training, &its = way.training;
  if (!its.unit_settings.empty()) return {};
  const std::set<int> forward{0, 1, 2, 3, given.forward_prefetch},
      backward{0, 1, 2, 3, given.backward_prefetch};
  std::vector<WayToShard> all;
  for (const int ahead : forward)
    for (const int behind : backward) {
      if (ahead == its.forward_prefetch && behind == its.backward_prefetch) continue;
      WayToShard& made = all.emplace_back(way);
      made.training.forward_prefetch = ahead;
      made.training.backward_prefetch = behind;
    }
  return all;
}

int fsdp_changes(const WayToShard& way) {
  const FsdpSettings standard, &its = way.training;
  const std::array changed{
      way.blocks != 1,
      way.own_head,
      !its.unit_settings.empty(),
      its.reshard_after_forward != standard.reshard_after_forward,
      its.replicate != standard.replicate,
      its.reduce_scatter_max_input_buffers != standard.reduce_scatter_max_input_buffers,
      its.separate_reduce_scatter_group,
      its.forward_prefetch != standard.forward_prefetch,
      its.backward_prefetch != standard.backward_prefetch};
  return static_cast<int>(std::ranges::count(changed, true));
}

bool is_same_fsdp(const FsdpSettings& one, const FsdpSettings& other) {
  return one.units == other.units && one.unit_settings == other.unit_settings &&
         one.replicate == other.replicate &&
         one.reshard_after_forward == other.reshard_after_forward &&
         one.reduce_scatter_max_input_buffers == other.reduce_scatter_max_input_buffers &&
         one.separate_reduce_scatter_group == other.separate_reduce_scatter_group &&
         one.forward_prefetch == other.forward_prefetch &&
         one.backward_prefetch == other.backward_prefetch;
}

}  // namespace ddpsim
