#include "tools/command/cluster_flags.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/yaml.hpp"
#include "tools/command/link_flags.hpp"
#include "tools/study/flag_values.hpp"

namespace ddpsim {
namespace {

constexpr int most_ranks = 100'000'000, most_nodes = 100'000, most_ranks_per_node = 1024;

/// The keys that a flag sets.
std::vector<std::string> keys_of_flag(const std::string& flag) {
  if (flag == "--cluster") return {"cluster"};
  if (flag == "--device") return {"cluster.device"};
  if (flag == "--nodes") return {"cluster.nodes"};
  if (flag == "--ranks") return {"cluster.ranks"};
  if (flag == "--ranks-per-node") return {"cluster.ranks_per_node"};
  if (flag == "--link") return {"cluster.intra_node", "cluster.inter_node"};
  return {};
}

}  // namespace

std::string told_of_flags(const std::vector<std::string>& arguments, std::string text) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    const std::string flag = arguments[i].substr(0, equals);
    const bool apart = equals == std::string::npos;
    if (apart && i + 1 == arguments.size()) break;
    const std::string value = apart ? arguments[i + 1] : arguments[i].substr(equals + 1);
    for (const std::string& key : keys_of_flag(flag)) {
      const std::string set = setting_text({key, entry_setting(value)}) + ":";
      if (const std::size_t at = text.find(set); at != std::string::npos)
        text.replace(at, set.size(), fmt::format("{} {}:", flag, value));
    }
  }
  return text;
}

void ClusterFlags::add_to(boost::program_options::options_description& flags) {
  using boost::program_options::value;
  flags.add_options()(
      "cluster", value(&cluster)->value_name("CLUSTER"),
      "a ready cluster in place of the scenario's, of as many nodes as that says: a "
      "name of `ddpsim list clusters`, or a path, looked for in the current folder, "
      "then in the scenario's")("nodes", value(&nodes)->value_name("N"),
                                "how many nodes there are")(
      "ranks-per-node", value(&ranks_per_node)->value_name("N"), "how many ranks a node has")(
      "ranks", value(&ranks)->value_name("N"),
      "how many ranks there are in all: whole nodes of a ready cluster; where there is only a link "
      "between nodes each is a node, where there is only one inside a node all are on one")(
      "device", value(&device)->value_name("DEVICE"),
      "the device of each rank: a name of `ddpsim list devices`, or a path")(
      "link", value(&links)->value_name("LINK"),
      "what joins the ranks, a name of `ddpsim list links` or a path: a network joins nodes, other "
      "links the ranks of one (may be given once for each)");
}

std::string entry_setting(const std::string& name_or_path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(name_or_path, error)) return name_or_path;
  std::string quoted = "'";
  for (const char c : std::filesystem::absolute(name_or_path).string())
    quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

std::vector<Setting> ClusterFlags::settings() const {
  std::vector<Setting> settings;
  if (!cluster.empty()) settings.emplace_back("cluster", entry_setting(cluster));
  const auto add = [&](const char* flag, const std::string& text, const char* key, int least,
                       int most) {
    if (text.empty()) return 0;
    const int count = count_of(flag, text, least, most);
    settings.emplace_back(key, fmt::format("{}", count));
    return count;
  };
  const int all = add("--ranks", ranks, "cluster.ranks", 1, most_ranks);
  const int of_nodes = add("--nodes", nodes, "cluster.nodes", 1, most_nodes);
  const int each =
      add("--ranks-per-node", ranks_per_node, "cluster.ranks_per_node", 1, most_ranks_per_node);
  if (all > 0 && of_nodes > 0 && each > 0 && static_cast<std::int64_t>(of_nodes) * each != all)
    throw InputError(fmt::format(
        "--ranks {} is not --nodes {} x --ranks-per-node {}: leave one of the three out", all,
        of_nodes, each));
  if (all > 0 && each == 0 && of_nodes > 0 && all % of_nodes != 0)
    throw InputError(fmt::format("--ranks {} does not divide by --nodes {}", all, of_nodes));
  if (all > 0 && of_nodes == 0 && each > 0 && all % each != 0)
    throw InputError(fmt::format("--ranks {} does not divide by --ranks-per-node {}", all, each));
  if (!device.empty()) settings.emplace_back("cluster.device", entry_setting(device));
  const auto& [inside, between] = links_of(links);
  if (!inside.empty()) settings.emplace_back("cluster.intra_node", entry_setting(inside));
  if (!between.empty()) settings.emplace_back("cluster.inter_node", entry_setting(between));
  return settings;
}

}  // namespace ddpsim
