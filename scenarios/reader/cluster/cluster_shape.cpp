#include "scenarios/reader/cluster/cluster_shape.hpp"

#include <cstdint>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/format/map.hpp"

namespace ddpsim {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw std::invalid_argument(problem);
}

/// `whole` in so many equal parts.
int part_of(int ranks, int parts, const char* written) {
  if (ranks % parts != 0)
    refuse(
        fmt::format("{} ranks do not divide by {} = {}: write nodes and ranks_per_node, whose "
                    "product it is, or how many each node has, such as ranks_per_node: [8, 4], and "
                    "leave ranks out",
                    ranks, written, parts));
  return ranks / parts;
}

/// `ranks` of a layer, as nodes and the ranks of each. `size` has what the layer says besides and,
/// where it says nothing, what stands below it.
void divide_ranks(ClusterSize& size, const YamlMap& layer, const Yaml& given, ClusterShape shape) {
  const int ranks = value::whole(1, most_nodes * most_ranks_per_node).read(given);
  if (size.ranks_per_node && !size.ranks_per_node->equal()) {
    if (const int listed = size.ranks_per_node->total(*size.nodes); ranks != listed)
      given.fail(
          fmt::format("{} ranks are not {} = {}, as ranks_per_node lists: leave one of the two out",
                      ranks, to_string(*size.ranks_per_node), listed));
    return;
  }
  const std::optional<int> each =
      size.ranks_per_node ? std::optional(size.ranks_per_node->largest()) : std::nullopt;
  (layer.has("ranks_per_node") ? shape.ranks_per_node : shape.system_ranks_per_node) = each;
  // Nodes of a known size are filled, however many there are below.
  const auto written = layer.find("ranks_per_node");
  if (layer.has("nodes") || !each || (written && written->is_list())) shape.nodes = size.nodes;
  try {
    const NodesAndRanks parts = divided(ranks, shape);
    size.nodes = parts.nodes;
    size.ranks_per_node = parts.ranks_per_node;
  } catch (const std::invalid_argument& problem) {
    given.fail(problem.what());
  }
  if (size.ranks_per_node->largest() > most_ranks_per_node)
    given.fail(fmt::format("{} ranks on one node are too many: at most {}; write nodes as well",
                           size.ranks_per_node->largest(), most_ranks_per_node));
  if (*size.nodes > most_nodes)
    given.fail(fmt::format("{} nodes are too many: at most {}", *size.nodes, most_nodes));
}

}  // namespace

Value<RanksPerNode> ranks_of_nodes() {
  const auto number = value::whole(1, most_ranks_per_node);
  auto list = value::list_of(number, "a number, or a list of one for each node",
                             "expected a number for each node, such as [8, 4]");
  list.type.front().most_items = most_nodes;
  return {
      value::either({number.type, list.type}),
      [=](const Yaml& given) -> RanksPerNode {
        if (!given.is_list()) return number.read(given);
        std::vector<int> of_each = list.read(given);
        if (of_each.size() > most_nodes)
          given.fail(fmt::format("{} nodes are too many: at most {}", of_each.size(), most_nodes));
        return RanksPerNode(std::move(of_each));
      },
      [=](YAML::Emitter& out, const RanksPerNode& ranks) {
        if (ranks.equal())
          number.write(out, ranks.largest());
        else
          list.write(out, ranks.of_each());
      }};
}

ClusterSize size_of(const std::vector<Yaml>& layers) {
  ClusterSize size;
  bool intra_node = false, inter_node = false;
  for (const Yaml& yaml : layers) {
    const YamlMap layer(yaml);
    intra_node |= layer.has("intra_node");
    inter_node |= layer.has("inter_node");
    const auto nodes = layer.find("nodes");
    const auto each = layer.find("ranks_per_node");
    const auto ranks = layer.find("ranks");
    if (nodes) size.nodes = value::whole(1, most_nodes).read(*nodes);
    if (each) size.ranks_per_node = ranks_of_nodes().read(*each);
    const std::size_t listed = each && each->is_list() ? each->size()
                               : size.ranks_per_node   ? size.ranks_per_node->of_each().size()
                                                       : 0;
    if (nodes && listed) check_listed_nodes(*nodes, std::to_string(*size.nodes), listed);
    if (listed) size.nodes = static_cast<int>(listed);
    if (ranks)
      divide_ranks(size, layer, *ranks, {.intra_node = intra_node, .inter_node = inter_node});
  }
  return size;
}

void check_listed_nodes(const Yaml& nodes, std::string_view written, std::size_t listed) {
  if (written != std::to_string(listed))
    nodes.fail(fmt::format("ranks_per_node lists {} node{}: write nodes: {}, or leave nodes out",
                           listed, listed == 1 ? "" : "s", listed));
}

NodesAndRanks divided(int ranks, const ClusterShape& shape) {
  if (shape.nodes && shape.ranks_per_node) {
    if (static_cast<std::int64_t>(*shape.nodes) * *shape.ranks_per_node != ranks)
      refuse(
          fmt::format("{} ranks are not nodes x ranks_per_node = {} x {}: leave one of the "
                      "three out",
                      ranks, *shape.nodes, *shape.ranks_per_node));
    return {*shape.nodes, *shape.ranks_per_node};
  }
  if (shape.nodes) return {*shape.nodes, part_of(ranks, *shape.nodes, "nodes")};
  if (shape.ranks_per_node)
    return {part_of(ranks, *shape.ranks_per_node, "ranks_per_node"), *shape.ranks_per_node};
  if (shape.system_ranks_per_node) {
    const int whole = *shape.system_ranks_per_node;
    if (ranks <= whole) return {1, ranks};
    return {part_of(ranks, whole, "the system's ranks_per_node"), whole};
  }
  if (ranks > 1 && shape.intra_node && shape.inter_node)
    refuse(
        fmt::format("{} ranks may be nodes of any size, as there are both intra_node and "
                    "inter_node: write nodes or ranks_per_node as well",
                    ranks));
  return shape.inter_node ? NodesAndRanks{ranks, 1} : NodesAndRanks{1, ranks};
}

}  // namespace ddpsim
