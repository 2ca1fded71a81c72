// What a log of NCCL proves of a cluster, as a file that --cluster takes. A figure that is NCCL's
// own estimate, or the catalogue's, has a note that says so; what the log does not say is left out.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/text/yaml_text.hpp"
#include "tools/import/imported.hpp"
#include "tools/import/nccl_log.hpp"
#include "tools/report/records/field_kinds.hpp"

namespace ddpsim {
namespace {

using LogJson = nlohmann::ordered_json;

constexpr std::size_t most_listed = 40;  // rows of a table

/// A cluster as far as a log goes. Texts are YAML.
struct LoggedSite {
  int nodes = 0, ranks_per_node = 0;  ///< 0: not said
  std::vector<int> of_each;           ///< ranks of nodes that are not of one size; empty: they are
  std::string intra_node, inter_node, collectives, cpu;
  int cards = 0;                ///< of a node whose network the log does not tell otherwise; 0: not
  bool through_memory = false;  ///< GPUs of a node reach each other through the host's memory alone
  std::vector<std::string> notes;
};

std::string rate_text(double gb_per_s) {
  return fmt::format("{} GB/s", std::round(gb_per_s * 1e4) / 1e4);
}

/// The links of the catalogue for which NCCL counts so much.
std::vector<std::string> links_counted_as(double gb_per_s, LinkKind kind) {
  std::vector<std::string> names;
  for (const std::string& name : catalogue_names(link_entries)) {
    const Link link = read_link(Yaml::of_text(name));
    if (link.kind == kind && std::abs(link.nccl_bandwidth.bytes_per_second / 1e9 - gb_per_s) < 0.06)
      names.push_back(name);
  }
  return names;
}

void find_size(const NcclLog& log, LoggedSite& site) {
  site.nodes = log.nodes;
  const bool all_seen = log.seen.size() == static_cast<std::size_t>(log.ranks);
  if (site.nodes == 0 && all_seen && !log.hosts.empty())
    site.nodes = static_cast<int>(log.hosts.size());
  if (site.nodes == 0) {
    site.notes.push_back(
        fmt::format("how many nodes the {} ranks are on is not said, which NCCL does from 2.19 on, "
                    "and lines of "
                    "{} ranks are there: give --nodes and --ranks-per-node",
                    log.ranks, log.seen.size()));
    return;
  }
  const std::vector<int> listed = ranks_of_nodes(log, site.nodes);
  const int mean = log.ranks / site.nodes;
  const bool may_be_mean =
      log.ranks % site.nodes == 0 && (log.ranks_per_node == 0 || log.ranks_per_node == mean);
  if (listed.empty() ? may_be_mean : std::ranges::count(listed, mean) == std::ssize(listed))
    site.ranks_per_node = mean;
  else if (!listed.empty())
    site.of_each = listed;
  const std::string unequal =
      fmt::format("{} ranks on {} nodes of unequal size", log.ranks, site.nodes);
  if (!site.of_each.empty())
    site.notes.push_back(fmt::format("{}: {}", unequal, fmt::join(site.of_each, " + ")));
  else if (site.ranks_per_node == 0)
    site.notes.push_back(
        unequal +
        ", and the log does not tell how many each has: write them into its empty list, "
        "such as ranks_per_node: [8, 4]; until then no command takes this cluster");
}

/// "8" or "[8, 4]"; "" where the number of nodes is not known, and "[]", which no command takes,
/// where it is and their sizes are not.
std::string ranks_text(const LoggedSite& site) {
  if (site.nodes == 0) return "";
  if (site.ranks_per_node > 0) return std::to_string(site.ranks_per_node);
  return fmt::format("[{}]", fmt::join(site.of_each, ", "));
}

/// That a network is Ethernet because the log does not say what it is.
void note_assumed_kind(const NcclLog& log, LoggedSite& site) {
  if (!log.infiniband && !log.roce && log.network.empty())
    site.notes.emplace_back(
        "inter_node: the log has no line \"NET/IB\" or \"Using network\" that says which network "
        "it is: taken as Ethernet; where it is InfiniBand write kind: infiniband, or log the "
        "subsystem NET");
  if (!log.infiniband && !log.roce && !log.network.empty() && log.network != "Socket")
    site.notes.push_back(fmt::format(
        "inter_node: the network is \"{}\", taken as Ethernet: the log does not say whether it is "
        "InfiniBand, as lines of the subsystem NET do",
        log.network));
}

/// The cards of a node: how many there are, and the rates that the driver tells of them.
struct NodeCards {
  std::size_t count = 0;
  double slowest = 0, fastest = 0;  ///< in GB/s; 0: not told
  double slot = 0;                  ///< GB/s of the slowest card's PCIe; 0: not told
};

NodeCards cards_of(const std::map<std::string, NcclNic>& net_nodes,
                   const std::map<std::string, NcclNic>& nics) {
  NodeCards cards{net_nodes.empty() ? nics.size() : net_nodes.size()};
  for (const auto* each : {&net_nodes, &nics})
    for (const auto& [name, nic] : *each)
      if (nic.gb_per_s && *nic.gb_per_s > 0) {
        cards.slowest = cards.slowest > 0 ? std::min(cards.slowest, *nic.gb_per_s) : *nic.gb_per_s;
        cards.fastest = std::max(cards.fastest, *nic.gb_per_s);
        if (nic.slot_gb_per_s > 0)
          cards.slot = cards.slot > 0 ? std::min(cards.slot, nic.slot_gb_per_s) : nic.slot_gb_per_s;
      }
  return cards;
}

std::string cards_text(const NodeCards& cards) {
  return fmt::format("{} card{}{}", cards.count, cards.count == 1 ? "" : "s",
                     cards.slowest > 0 ? " of " + rate_text(cards.slowest) : "");
}

/// That the driver's list of a node's cards (NET) and the node's topology (GRAPH) count them
/// differently: said of the first such node, as others are mostly alike.
void note_other_count(const NcclLog& log, LoggedSite& site) {
  for (const auto& [name, host] : log.of_hosts) {
    const std::size_t listed = host.nics.size(), shown = host.net_nodes.size();
    if (listed == 0 || shown == 0 || listed == shown) continue;
    return site.notes.push_back(fmt::format(
        "inter_node: NET/IB lists {} card{}{}, GRAPH shows {}: {} is taken, as NCCL goes by GRAPH; "
        "where the log lacks lines of GRAPH, write nics: {}",
        listed, listed == 1 ? "" : "s", name.empty() ? "" : " of " + name, shown, shown, listed));
  }
}

/// The cards of the node with the slowest network: the least rate of all its cards together.
NodeCards slowest_cards(const NcclLog& log, LoggedSite& site) {
  std::vector<NodeCards> all;
  for (const auto& [name, host] : log.of_hosts)
    if (const NodeCards cards = cards_of(host.net_nodes, host.nics); cards.count > 0)
      all.push_back(cards);
  if (all.empty()) return {};
  const auto slower = [](const NodeCards& a, const NodeCards& b) {
    const auto speed = [](const NodeCards& cards) {
      const auto count = static_cast<double>(cards.count);
      const double rate =
          cards.slowest > 0 ? count * cards.slowest : std::numeric_limits<double>::infinity();
      return std::tuple(rate, count, cards.slowest);
    };
    return speed(a) < speed(b);
  };
  const auto [least, most] = std::minmax_element(all.begin(), all.end(), slower);
  if (cards_text(*least) != cards_text(*most))
    site.notes.push_back(
        fmt::format("inter_node: nodes have different networks, from {} to {}: the slowest is "
                    "written for all",
                    cards_text(*least), cards_text(*most)));
  return *least;
}

/// The NVLink of the node that has the slowest, as NCCL counts it.
NcclHost slowest_nvlink(const NcclLog& log, LoggedSite& site) {
  std::optional<NcclHost> least, most;
  for (const auto& [name, host] : log.of_hosts) {
    if (host.nvlink_gb_per_s <= 0) continue;
    if (!least || host.nvlink_gb_per_s < least->nvlink_gb_per_s) least = host;
    if (!most || host.nvlink_gb_per_s > most->nvlink_gb_per_s) most = host;
  }
  if (!least) return {};
  if (rate_text(least->nvlink_gb_per_s) != rate_text(most->nvlink_gb_per_s))
    site.notes.push_back(
        fmt::format("intra_node: nodes have different NVLinks, of which NCCL counts {} to {} for a "
                    "GPU: the slowest is written for all",
                    rate_text(least->nvlink_gb_per_s), rate_text(most->nvlink_gb_per_s)));
  return *least;
}

/// The link of the catalogue for which NCCL counts as much as it says of this one, by a note and
/// the text of that link; none where no link or several are counted so.
std::optional<std::string> link_of_catalogue(double gb_per_s, const NcclHost* nvlink,
                                             LoggedSite& site) {
  const std::vector<std::string> names =
      links_counted_as(gb_per_s, nvlink != nullptr ? LinkKind::nvlink : LinkKind::pcie);
  if (names.size() != 1) return std::nullopt;
  const std::string& name = names.front();
  site.notes.push_back(fmt::format(
      "intra_node: NCCL counts {} of {} for a GPU, as for {}, whose line rate and latency are the "
      "catalogue's",
      rate_text(gb_per_s), nvlink != nullptr ? "NVLink" : "PCIe", name));
  if (nvlink == nullptr || read_link(Yaml::of_text(name)).nvswitch == nvlink->nvswitch) return name;
  return fmt::format("{{base: {}, nvswitch: {}}}", name, nvlink->nvswitch);
}

/// A link of which NCCL's own figure alone is known. NCCL's figure is what it expects a link to
/// carry, not the line rate of which a share would be lost; but through the host's memory far less
/// arrives than NCCL expects.
std::string link_as_counted(std::string_view kind, double gb_per_s, bool nvswitch,
                            bool through_memory = false) {
  return fmt::format("{{kind: {0}, bandwidth: {1}, nccl_bandwidth: {1}{2}{3}}}", kind,
                     rate_text(gb_per_s), through_memory ? "" : ", carries: 1",
                     nvswitch ? ", nvswitch: true" : "");
}

/// "nvlink4", or a mapping; "" where the log does not say.
std::string link_inside(const NcclLog& log, LoggedSite& site) {
  const NcclHost nvlink = slowest_nvlink(log, site);
  // Where only some GPUs of a node are joined by NVLink, rings go over PCIe too, at its pace.
  const std::string_view path = log.ring_search ? log.ring_search->intra_path : "";
  const bool by_nvlink = path.empty() ? nvlink.nvlink_gb_per_s > 0 : path == "NVL" || path == "NVB";
  if (by_nvlink && nvlink.nvlink_gb_per_s > 0) {
    if (const auto known = link_of_catalogue(nvlink.nvlink_gb_per_s, &nvlink, site)) return *known;
    site.notes.push_back(fmt::format(
        "intra_node: {} is what NCCL counts for the NVLink of a GPU, which is below the line rate: "
        "the log does not say that",
        rate_text(nvlink.nvlink_gb_per_s)));
    return link_as_counted("nvlink", nvlink.nvlink_gb_per_s, nvlink.nvswitch);
  }
  if (!by_nvlink && nvlink.nvlink_gb_per_s > 0)
    site.notes.push_back(fmt::format(
        "intra_node: NVLink joins some of a node's GPUs, and NCCL's rings go over PCIe as well "
        "({}), which is the slower of the two and is written",
        path));
  const auto has = [&](std::string_view transport) {
    return std::any_of(log.transports.begin(), log.transports.end(),
                       [&](const auto& each) { return each.first.starts_with(transport); });
  };
  if (!by_nvlink && has("SHM") && !has("P2P")) {
    site.through_memory = true;
    site.notes.emplace_back(
        "intra_node: GPUs of a node reach each other through the host's memory alone (SHM), which "
        "a device has to say: --set 'cluster.device={base: DEVICE, peer_to_peer: false}' in place "
        "of --device DEVICE");
  }
  const double searched =
      log.ring_search ? log.ring_search->channels * log.ring_search->intra_gb_per_s : 0;
  if (searched > 0) {
    if (!by_nvlink && !site.through_memory)
      if (const auto known = link_of_catalogue(searched, nullptr, site)) return *known;
    site.notes.push_back(fmt::format(
        "intra_node: {} is what NCCL's search found for its rings, {} channels of {}: an estimate, "
        "and no line rate",
        rate_text(searched), log.ring_search->channels,
        rate_text(log.ring_search->intra_gb_per_s)));
    return link_as_counted(by_nvlink ? "nvlink" : "pcie", searched, false, site.through_memory);
  }
  site.notes.push_back(
      "intra_node: the log does not say what joins the GPUs of a node: log the subsystem GRAPH, or "
      "give --link");
  return "";
}

/// What lies between a card and the GPUs' memory, where that is slower than the card.
void note_slow_paths(const NcclLog& log, const NodeCards& cards, LoggedSite& site) {
  // What NCCL counts for a slot is three quarters of its line rate.
  if (cards.slot > 0 && cards.slot < 0.7 * cards.slowest)
    site.notes.push_back(fmt::format(
        "inter_node: NCCL counts {} for the PCIe of a card, less than its port's {}: where the "
        "card stands in such a slot, write {} as its bandwidth",
        rate_text(cards.slot), rate_text(cards.slowest), rate_text(cards.slot)));
  std::int64_t direct = 0, through_host = 0;
  for (const auto& [name, count] : log.transports)
    if (name.starts_with("NET/") && !name.starts_with("NET/Socket"))
      (name.find("GDRDMA") == std::string::npos ? through_host : direct) += count;
  if (through_host > 0)
    site.notes.push_back(fmt::format(
        "inter_node: {} of {} connections go without GPUDirect RDMA, over copies in the host's "
        "memory, which a prediction takes no time for",
        through_host, through_host + direct));
}

std::string link_between(const NcclLog& log, LoggedSite& site) {
  const NodeCards cards = slowest_cards(log, site);
  note_other_count(log, site);
  note_slow_paths(log, cards, site);
  const std::string kind = log.infiniband && !log.roce ? "infiniband" : "ethernet";
  if (log.infiniband && log.roce)
    site.notes.emplace_back(
        "inter_node: cards of InfiniBand and of RoCE: which of them ranks use is not told apart");
  const std::string count =
      cards.count == 0 ? "" : fmt::format(", nics: {}", std::min<std::size_t>(cards.count, 1024));
  const auto link = [&](double gb_per_s, const char* more = "") {
    note_assumed_kind(log, site);
    return fmt::format("{{kind: {}, bandwidth: {}{}{}}}", kind, rate_text(gb_per_s), more, count);
  };
  if (cards.fastest - cards.slowest >= 1e-3)
    site.notes.push_back(
        fmt::format("inter_node: a node has cards of {} and of {}: the slowest stands for all",
                    rate_text(cards.slowest), rate_text(cards.fastest)));
  if (cards.slowest > 0) {
    site.notes.push_back(
        fmt::format("inter_node: {} is the rate that the driver tells NCCL of a card{}",
                    rate_text(cards.slowest),
                    log.network == "Socket" ? "; where it tells none, NCCL takes 1.25 GB/s" : ""));
    return link(cards.slowest);
  }
  if (log.ring_search && log.ring_search->inter_gb_per_s > 0 && cards.count > 0) {
    const double of_card = log.ring_search->channels * log.ring_search->inter_gb_per_s /
                           static_cast<double>(cards.count);
    site.notes.push_back(
        fmt::format("inter_node: {} is what NCCL's search found for a card, {} channels of {} over "
                    "{} cards: an "
                    "estimate, and no line rate",
                    rate_text(of_card), log.ring_search->channels,
                    rate_text(log.ring_search->inter_gb_per_s), cards.count));
    return link(of_card, ", carries: 1");
  }
  site.cards = static_cast<int>(std::min<std::size_t>(cards.count, 1024));
  site.notes.push_back(fmt::format(
      "inter_node: the log does not say how fast the cards are{}: log the subsystem GRAPH, or give "
      "--link{}",
      site.cards == 0 ? "" : fmt::format(", of which a node has {}", site.cards),
      site.cards == 0 ? "" : fmt::format(" and --set cluster.inter_node.nics={}", site.cards)));
  return "";
}

/// What NCCL was forced to take, and its release.
std::string collectives_of(const NcclLog& log, LoggedSite& site) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  };
  int major = 0, minor = 0;
  if (std::sscanf(log.version.c_str(), "%d.%d", &major, &minor) == 2 && major == 2)
    add("release", minor < 5 ? "2.4" : minor < 28 ? "2.26" : "2.28");
  const auto lower = [](std::string value) {
    for (char& c : value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return value;
  };
  for (const auto& [name, value] : log.environment) {
    const std::string small = lower(value);
    const bool channels = name == "NCCL_MAX_NCHANNELS";
    if (name == "NCCL_ALGO" && (small == "ring" || small == "tree" || small == "nvls"))
      add("algorithm", small);
    else if (name == "NCCL_ALGO" && small == "nvlstree")
      add("algorithm", "nvls_tree");
    else if (name == "NCCL_PROTO" && (small == "ll" || small == "ll128" || small == "simple"))
      add("protocol", small);
    else if (channels && small.size() < 3 && !small.empty() && small != "0" &&
             small.find_first_not_of("0123456789") == std::string::npos && std::stoi(small) <= 64)
      add("channels", small);
    else
      site.notes.push_back(fmt::format(
          "{}={}: no key of a scenario says that, so predictions leave it out", name, value));
  }
  return text.empty() ? "" : "{" + text + "}";
}

LoggedSite site_of(const NcclLog& log) {
  LoggedSite site;
  find_size(log, site);
  if (site.ranks_per_node != 1) site.intra_node = link_inside(log, site);
  if (site.nodes != 1) site.inter_node = link_between(log, site);
  site.collectives = collectives_of(log, site);
  site.cpu = log.cpu;
  site.notes.emplace_back("NCCL does not name the GPUs: give --device, or add the key `device`");
  if (log.seen.size() < static_cast<std::size_t>(log.ranks))
    site.notes.push_back(
        fmt::format("lines of {} of {} ranks are there; connections are counted from those alone",
                    log.seen.size(), log.ranks));
  if (log.other_communicators > 0)
    site.notes.push_back(fmt::format(
        "{} more communicators of ranks are left out: this is the largest, as its first "
        "lines have it",
        log.other_communicators));
  if (log.left_out)
    site.notes.emplace_back(
        "the log holds more than ddpsim keeps of one: what is shown is a part of it");
  return site;
}

std::string source_of(const NcclLog& log, const ImportRequest& request) {
  std::string source =
      fmt::format("NCCL{}{}, {} ranks", log.version.empty() ? "" : " ", log.version, log.ranks);
  if (log.nodes > 0) source += fmt::format(" on {} node{}", log.nodes, log.nodes == 1 ? "" : "s");
  source += ", " + std::filesystem::path(request.file).filename().string();
  if (!request.others.empty()) source += fmt::format(" and {} more", request.others.size());
  return source;
}

/// The command that uses the cluster in `file`, with a flag for each thing that it needs and that
/// the log does not say. Sizes of unequal nodes have a list in the file (ranks_text).
std::string next_with_site(const LoggedSite& site, std::string_view file) {
  std::string next =
      fmt::format("ddpsim run SCENARIO --cluster {} {}", file,
                  site.through_memory ? "--set 'cluster.device={base: DEVICE, peer_to_peer: false}'"
                                      : "--device DEVICE");
  if (site.nodes == 0) next += " --nodes N --ranks-per-node N";
  if (site.ranks_per_node != 1 && site.intra_node.empty()) next += " --link INTRA_NODE";
  if (site.nodes != 1 && site.inter_node.empty()) next += " --link INTER_NODE";
  if (site.cards > 0) next += fmt::format(" --set cluster.inter_node.nics={}", site.cards);
  return next;
}

std::string site_yaml(const LoggedSite& site, const std::string& source) {
  std::string text =
      fmt::format("# A cluster from a log of NCCL: {}\n", next_with_site(site, "THIS"));
  for (const std::string& note : site.notes) text += fmt::format("# {}\n", note);
  YAML::Emitter quoted;
  write_text(quoted, source);
  text += fmt::format("source: {}\n", quoted.c_str());
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty() && value != "0") text += fmt::format("{}: {}\n", key, value);
  };
  add("nodes", std::to_string(site.ranks_per_node > 0 ? site.nodes : 0));
  add("ranks_per_node", ranks_text(site));
  add("intra_node", site.intra_node);
  add("inter_node", site.inter_node);
  add("cpu", site.cpu);
  add("collectives", site.collectives);
  return text;
}

std::string ring_text(const std::vector<int>& ring) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(ring.size(), 32); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : " ", ring[i]);
  return text + (ring.size() > 32 ? " ..." : "");
}

std::string facts_text(const NcclLog& log) {
  std::string text;
  if (log.channels > 0) text += fmt::format("{} channels for collectives; ", log.channels);
  if (!log.rings.empty())
    text += fmt::format("{} rings, the first: {}; ", log.rings.size(), ring_text(log.rings[0]));
  if (log.trees > 0) text += fmt::format("{} trees; ", log.trees);
  if (!log.network.empty()) text += fmt::format("network: {}; ", log.network);
  if (!log.transports.empty()) {
    text += "connections:";
    for (const auto& [name, count] : log.transports) text += fmt::format(" {} {},", count, name);
    text.pop_back();
    text += "; ";
  }
  if (text.size() > 1) text.resize(text.size() - 2);
  return text;
}

constexpr Field operation_field = fields::text_field("operation", "collective", "The collective."),
                algorithm_field =
                    fields::text_field("algorithm", "algorithm", "NCCL's name of it."),
                protocol_field = fields::text_field("protocol", "protocol", "NCCL's name of it."),
                latency_field = fields::ratio_field("latency_us", "latency us",
                                                    "NCCL's estimate of an empty message.",
                                                    Better::low, fields::tenths),
                rate_field =
                    fields::ratio_field("gb_per_s", "GB/s", "NCCL's estimate for long messages.",
                                        Better::high, fields::tenths),
                size_field = fields::bytes_field("bytes", "size", "The message."),
                channels_field =
                    fields::count_field("channels", "channels", "As many as NCCL gave it."),
                times_field = fields::count_field("times", "times", "How often it was called.");

void note_more(Table& table, std::size_t all) {
  if (all > most_listed)
    table.notes = fmt::format("the first {} of {}; --json FILE holds all", most_listed, all);
}

void add_tuning(const NcclLog& log, Imported& imported) {
  Table table{{operation_field, algorithm_field, protocol_field, latency_field, rate_field}};
  table.title = "NCCL's own estimates for this communicator";
  imported.json["tuning"] = LogJson::array();
  for (const NcclTableEntry& entry : log.table) {
    imported.json["tuning"].push_back({{"operation", entry.operation},
                                       {"algorithm", entry.algorithm},
                                       {"protocol", entry.protocol},
                                       {"latency_us", entry.latency_us},
                                       {"gb_per_s", entry.gb_per_s}});
    if (entry.operation == "AllReduce" && entry.gb_per_s > 0)
      table.add(
          {entry.operation, entry.algorithm, entry.protocol, entry.latency_us, entry.gb_per_s});
  }
  if (!table.rows.empty()) imported.page.add(std::move(table));
}

void add_collectives(const NcclLog& log, Imported& imported) {
  Table taken{
      {operation_field, size_field, algorithm_field, protocol_field, channels_field, times_field}};
  taken.title = "what NCCL took";
  imported.json["taken"] = LogJson::array();
  for (const auto& [which, each] : log.taken) {
    const auto channels = each.channels > 0 ? FieldValue(each.channels) : FieldValue();
    imported.json["taken"].push_back(
        {{"operation", which.first},
         {"bytes", which.second},
         {"algorithm", each.algorithm},
         {"protocol", each.protocol},
         {"channels", each.channels > 0 ? LogJson(each.channels) : LogJson()},
         {"times", each.times}});
    if (taken.rows.size() < most_listed)
      taken.add({which.first, which.second, each.algorithm, each.protocol, channels, each.times});
  }
  note_more(taken, log.taken.size());
  if (!taken.rows.empty()) imported.page.add(std::move(taken));
  Table calls{{operation_field, size_field, times_field}};
  calls.title = "collectives of one rank";
  imported.json["calls"] = LogJson::array();
  for (const auto& [which, times] : log.calls) {
    imported.json["calls"].push_back(
        {{"operation", which.first}, {"bytes", which.second}, {"times", times}});
    if (calls.rows.size() < most_listed) calls.add({which.first, which.second, times});
  }
  note_more(calls, log.calls.size());
  if (!calls.rows.empty()) imported.page.add(std::move(calls));
}

}  // namespace

Imported import_nccl_log(const ImportRequest& request) {
  std::vector<std::string> files{request.file};
  files.insert(files.end(), request.others.begin(), request.others.end());
  const NcclLog log = read_nccl_log(files);
  const LoggedSite site = site_of(log);
  const std::string source = source_of(log, request);

  Imported imported;
  imported.json = {{"format", "ddpsim.import/1"},
                   {"kind", "nccl-log"},
                   {"files", files},
                   {"nccl", log.version},
                   {"ranks", log.ranks},
                   {"nodes", site.nodes},
                   {"ranks_per_node",
                    site.of_each.empty() ? LogJson(site.ranks_per_node) : LogJson(site.of_each)},
                   {"channels", log.channels},
                   {"rings", log.rings},
                   {"trees", log.trees},
                   {"network", log.network},
                   {"transports", log.transports}};
  imported.page.add(Paragraph{fmt::format("{}: {}\n{}", request.file, source, facts_text(log))});
  add_tuning(log, imported);
  add_collectives(log, imported);
  imported.json["notes"] = site.notes;
  imported.profile = site_yaml(site, source);
  imported.next = next_with_site(site, "FILE");
  std::string below;
  for (const std::string& note : site.notes) below += fmt::format("note: {}\n", note);
  imported.page.add(Paragraph{imported.profile.substr(imported.profile.find("source: ")) + below});
  return imported;
}

}  // namespace ddpsim
