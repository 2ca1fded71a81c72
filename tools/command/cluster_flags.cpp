#include "tools/command/cluster_flags.hpp"

#include <filesystem>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/text/catalogue_folder.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tools/command/link_flags.hpp"
#include "tools/study/flag_values.hpp"

namespace ddpsim {
namespace {

constexpr int most_ranks = 100'000'000, most_nodes = 100'000, most_ranks_per_node = 1024;

[[noreturn]] void refuse_ranks(const std::string& text) {
  throw InputError(fmt::format(
      "--ranks-per-node {}: expected a whole number from 1 to {}, or one for each node, "
      "such as 8,4",
      text, most_ranks_per_node));
}

/// Throws InputError where the numbers do not go together. 0, or no number of ranks per node: not
/// given.
void check_numbers(int all, int nodes, const std::vector<int>& each, const std::string& listed) {
  if (each.size() > 1) {
    const auto sum = std::accumulate(each.begin(), each.end(), std::int64_t{0});
    if (nodes > 0 && static_cast<std::size_t>(nodes) != each.size())
      throw InputError(fmt::format(
          "--ranks-per-node {} lists {} nodes, not the {} of --nodes: leave --nodes out", listed,
          each.size(), nodes));
    if (all > 0 && sum != all)
      throw InputError(fmt::format(
          "--ranks {} is not the sum of --ranks-per-node {}: leave --ranks out", all, listed));
    return;
  }
  const int ranks = each.empty() ? 0 : each.front();
  if (all > 0 && nodes > 0 && ranks > 0 && static_cast<std::int64_t>(nodes) * ranks != all)
    throw InputError(fmt::format(
        "--ranks {} is not --nodes {} x --ranks-per-node {}: leave one of the three out", all,
        nodes, ranks));
  if (all > 0 && ranks == 0 && nodes > 0 && all % nodes != 0)
    throw InputError(fmt::format("--ranks {} does not divide by --nodes {}", all, nodes));
  if (all > 0 && nodes == 0 && ranks > 0 && all % ranks != 0)
    throw InputError(fmt::format("--ranks {} does not divide by --ranks-per-node {}", all, ranks));
}

}  // namespace

std::vector<int> ranks_of_nodes(const std::string& text) {
  std::vector<int> ranks;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    const auto count = parse_integer(item);
    if (!count || *count < 1 || *count > most_ranks_per_node) refuse_ranks(text);
    ranks.push_back(static_cast<int>(*count));
  }
  if (ranks.empty() || text.ends_with(',') || ranks.size() > std::size_t{most_nodes})
    refuse_ranks(text);
  return ranks;
}

void ClusterFlags::add_to(boost::program_options::options_description& flags) {
  using boost::program_options::value;
  flags.add_options()("cluster", value(&cluster)->value_name("CLUSTER"),
                      "a ready cluster in place of the scenario's, of as many nodes as that has "
                      "unless its own file "
                      "says how many: a name of `ddpsim list clusters`, or a path (./NAME where a "
                      "file is called like an entry), looked for in the current folder, "
                      "then in the scenario's")("nodes", value(&nodes)->value_name("N"),
                                                "how many nodes there are")(
      "ranks-per-node", value(&ranks_per_node)->value_name("N|N,N,..."),
      "how many ranks a node has: of all nodes, or of each, such as 8,4")(
      "ranks", value(&ranks)->value_name("N"),
      "how many ranks there are in all: whole nodes of a ready cluster are filled, however many it "
      "has (--nodes spreads them); where there is only a link "
      "between nodes each is a node, where there is only one inside a node all are on one")(
      "device", value(&device)->value_name("DEVICE"),
      "the device of each rank: a name of `ddpsim list devices`, or a path")(
      "link", value(&links)->value_name("LINK"),
      "what joins the ranks, a name of `ddpsim list links` or a path: a network, or a table that "
      "was "
      "measured over several nodes, joins nodes, other links the ranks of one (may be given once "
      "for each)");
}

std::string entry_setting(const std::string& name_or_path, std::string_view kind) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(name_or_path, error) || is_of_catalogue(name_or_path, kind))
    return name_or_path;
  std::string quoted = "'";
  for (const char c : std::filesystem::absolute(name_or_path).string())
    quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

std::vector<Setting> ClusterFlags::settings() const {
  std::vector<Setting> settings;
  const auto add = [&](const char* flag, const std::string& given, const char* key,
                       const std::string& value) {
    if (!given.empty()) settings.emplace_back(key, value, fmt::format("{} {}", flag, shown(given)));
  };
  const auto count = [](const char* flag, const std::string& given, int most) {
    return given.empty() ? 0 : count_of(flag, given, 1, most);
  };
  add("--cluster", cluster, "cluster", entry_setting(cluster, cluster_entries));
  const int all = count("--ranks", ranks, most_ranks),
            of_nodes = count("--nodes", nodes, most_nodes);
  std::vector<int> each;
  if (!ranks_per_node.empty()) each = ranks_of_nodes(ranks_per_node);
  check_numbers(all, of_nodes, each, ranks_per_node);
  add("--ranks", ranks, "cluster.ranks", fmt::format("{}", all));
  add("--nodes", nodes, "cluster.nodes", fmt::format("{}", of_nodes));
  add("--ranks-per-node", ranks_per_node, "cluster.ranks_per_node",
      each.size() == 1 ? fmt::format("{}", each.front())
                       : fmt::format("[{}]", fmt::join(each, ", ")));
  add("--device", device, "cluster.device", entry_setting(device, device_entries));
  const auto& [inside, between] = links_of(links);
  add("--link", inside, "cluster.intra_node", entry_setting(inside, link_entries));
  add("--link", between, "cluster.inter_node", entry_setting(between, link_entries));
  return settings;
}

}  // namespace ddpsim
