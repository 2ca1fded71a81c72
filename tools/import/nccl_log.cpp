// The lines of one process belong to the communicator that it sets up: from "Init START" (which
// NCCL prints since 2.15) to "Init COMPLETE", and what it says later of connections and collectives
// to the last one. A job has several communicators; the one with the most ranks is told of.
//
//     node-1:7:9 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 ... - Init START
//     node-1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
//     node-1:7:9 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 ... - Init COMPLETE

#include "tools/import/nccl_log.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <tuple>
#include <type_traits>
#include <unordered_map>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tools/import/nccl_tests_line.hpp"

namespace ddpsim {
namespace {

// What is kept of a log, at most.
constexpr std::size_t most_processes = 65536, most_of_each = 4096, longest_word = 80,
                      most_rings = 64, most_ring_ranks = 1024, most_columns = 32,
                      most_entries = 1'000'000;  // of all processes together
constexpr int most_ranks = 1'000'000;

/// The largest number a log can say without being nonsense.
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;

std::optional<int> count_in(std::string_view word, int most = most_ranks) {
  while (!word.empty() && (word.back() == ',' || word.back() == ']')) word.remove_suffix(1);
  const auto number = parse_integer(word);
  if (!number || *number < 0 || *number > most) return std::nullopt;
  return static_cast<int>(*number);
}

/// A rate or a time: "20.000000/20.000000" has two.
std::optional<double> real_in(std::string_view word) {
  while (!word.empty() && (word.back() == ',' || word.back() == ')')) word.remove_suffix(1);
  if (word.empty() || word.size() > 24 ||
      word.find_first_not_of("0123456789.") != std::string_view::npos)
    return std::nullopt;
  try {
    const double value = std::stod(std::string(word));
    return value < 1e9 ? std::optional(value) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string kept(std::string_view word) {
  return printable(word.substr(0, longest_word));
}

/// The word behind `key`; "" if there is none.
std::string_view behind(const LineWords& words, std::string_view key) {
  const auto at = std::find(words.begin(), words.end(), key);
  return at == words.end() || at + 1 == words.end() ? std::string_view() : *(at + 1);
}

bool has_words(const LineWords& words, const LineWords& wanted) {
  return find_words(words, wanted).has_value();
}

/// "a/b" apart.
std::pair<std::string_view, std::string_view> halves(std::string_view word) {
  const std::size_t slash = word.find('/');
  if (slash == std::string_view::npos) return {word, {}};
  return {word.substr(0, slash), word.substr(slash + 1)};
}

/// The rank that "12[4]" or "12[1b000]" begins with.
std::optional<int> rank_in(std::string_view word) {
  return count_in(word.substr(0, word.find('[')));
}

/// The names behind the numbers that lines before 2.24 have. Source: NCCL,
/// src/include/nccl_common.h (before 2.12, which has one CollNet, none above 2 occurs).
std::string algorithm_named(std::string_view word) {
  constexpr std::array names{"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                             "NVLSTree", "PAT"};
  const auto number = count_in(word, static_cast<int>(names.size()) - 1);
  return number ? names[static_cast<std::size_t>(*number)] : kept(word);
}
std::string protocol_named(std::string_view word) {
  constexpr std::array names{"LL", "LL128", "Simple"};
  const auto number = count_in(word, static_cast<int>(names.size()) - 1);
  return number ? names[static_cast<std::size_t>(*number)] : kept(word);
}

/// Bytes of an element of ncclDataType_t, as nccl.h numbers them; 0: none of those.
std::int64_t bytes_of_type(int type) {
  constexpr std::array<std::int64_t, 12> bytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type < static_cast<int>(bytes.size()) ? bytes[static_cast<std::size_t>(type)] : 0;
}

/// What one process said of one communicator.
struct RankLines {
  NcclLog said;
  std::optional<int> rank;
  bool complete = false;
  double gpu_nvlink = 0;  ///< of the GPU whose links are being listed
  double nic_slot = 0;    ///< GB/s of the PCIe of the card whose ports are being listed
  std::vector<std::pair<std::string, std::string>> columns;  ///< [column] algorithm, protocol
  std::vector<std::string> algorithms;                       ///< of a header in two lines
};

class NcclLogReader {
 public:
  void take(std::string_view raw) {
    take_version(raw);
    const auto line = nccl_line(raw);
    if (!line) return;
    const LineWords words = words_of(line->text);
    if (words.empty()) return;
    std::string process(line->process.substr(0, longest_word));
    const bool begins = has_words(words, {"Init", "START"});
    RankLines* open = begins ? another(process) : latest(process);
    if (open == nullptr) return;
    if (!line->host.empty()) open->said.hosts.insert(kept(line->host));
    take_head(words, *open);
    take_graph(words, *open);
    take_topology(words, *open);
    take_network(words, *open);
    take_connection(words, *open);
    take_table(line->text, *open);
    take_collective(words, *open);
    if (has_words(words, {"Init", "COMPLETE"})) open->complete = true;
  }

  NcclLog finish() {
    std::vector<RankLines*> all;
    for (auto& [process, several] : processes_)
      for (RankLines& each : several) all.push_back(&each);
    // In an order that does not depend on which process came first.
    const auto place = [](const RankLines* each) {
      const std::set<std::string>& hosts = each->said.hosts;
      return std::tuple(-each->said.ranks, each->rank.value_or(most_ranks),
                        hosts.empty() ? std::string() : *hosts.begin());
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const RankLines* a, const RankLines* b) { return place(a) < place(b); });
    std::erase_if(all, [](const RankLines* each) { return each->said.ranks == 0; });
    NcclLog log;
    for (const RankLines* each : all) {
      const bool same = log.ranks == 0 || (each->said.ranks == log.ranks && each->rank &&
                                           !log.seen.contains(*each->rank));
      if (same)
        merge(*each, log);
      else
        ++log.other_communicators;
    }
    log.version = version_;
    log.left_out = left_out_;
    return log;
  }

  bool any_line() const { return !processes_.empty(); }

 private:
  /// The communicator that a process is setting up, or has set up last; none where there are too
  /// many.
  RankLines* latest(const std::string& process) {
    const auto found = processes_.find(process);
    return found == processes_.end() ? another(process) : &found->second.back();
  }
  RankLines* another(const std::string& process) {
    if (communicators_ >= most_processes) {
      left_out_ = true;
      return nullptr;
    }
    std::vector<RankLines>& all = processes_[process];
    // What came before the first "Init START" (networks, plugins) is of the process.
    if (all.size() == 1 && !all.back().complete && all.back().said.ranks == 0) return &all.back();
    ++communicators_;
    RankLines next;
    if (!all.empty()) {
      next.said.nics = all.back().said.nics;
      next.said.network = all.back().said.network;
      next.said.infiniband = all.back().said.infiniband;
      next.said.roce = all.back().said.roce;
      next.said.environment = all.back().said.environment;
    }
    all.push_back(std::move(next));
    return &all.back();
  }

  bool room_for(std::size_t entries) {
    left_out_ = left_out_ || entries > room_;
    if (entries > room_) return false;
    room_ -= entries;
    return true;
  }
  /// The entry of a map; none where there is no room for another one.
  template <typename Map, typename Key>
  typename Map::mapped_type* entry_of(Map& map, const Key& key) {
    const auto found = map.find(key);
    if (found != map.end()) return &found->second;
    if (map.size() < most_of_each && room_for(1)) return &map[key];
    left_out_ = true;
    return nullptr;
  }

  void take_version(std::string_view raw) {
    constexpr std::string_view mark = "NCCL version ";
    const std::size_t at = raw.find(mark);
    if (at == std::string_view::npos || !version_.empty()) return;
    std::string_view rest = raw.substr(at + mark.size());
    const std::size_t end = rest.find_first_not_of("0123456789.");
    rest = rest.substr(0, end);
    if (!rest.empty() && rest.size() < 16 && rest[0] != '.') version_ = rest;
  }

  void take_head(const LineWords& words, RankLines& open) {
    NcclLog& said = open.said;
    if (words.size() > 3 && has_words(words, {"comm"}) && has_words(words, {"rank"})) {
      auto ranks = count_in(behind(words, "nranks"));
      if (!ranks) ranks = count_in(behind(words, "nRanks"));
      const auto rank = count_in(behind(words, "rank"));
      if (ranks && *ranks > 0 && rank && *rank < *ranks) {
        said.ranks = *ranks;
        open.rank = *rank;
      }
      if (const auto nodes = count_in(behind(words, "nNodes"))) said.nodes = *nodes;
      if (const auto local = count_in(behind(words, "localRanks"))) said.ranks_per_node = *local;
    }
    if (const auto at = find_words(words, {"coll", "channels,"}); at && *at > 0)
      said.channels = count_in(words[*at - 1], 1024).value_or(0);
    if (words[0] == "NVLS" && has_words(words, {"multicast", "support", "is", "available"}))
      said.nvswitch = true;
    if (const auto at = find_words(words, {"set", "by", "environment", "to"});
        at && *at > 0 && *at + 4 < words.size())
      for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS"})
        if (words[*at - 1] == name) {
          std::string value = kept(words[*at + 4]);
          while (!value.empty() && value.back() == '.') value.pop_back();
          said.environment[name] = value;
        }
  }

  /// Rings, trees, and what the search for them came to.
  void take_graph(const LineWords& words, RankLines& open) {
    NcclLog& said = open.said;
    if (words[0] == "Trees" && words.size() > 1)
      said.trees = static_cast<int>(std::count_if(
          words.begin(), words.end(), [](std::string_view word) { return word.starts_with('['); }));
    if (words[0] == "Channel" && words.size() > 3 && words[2] == ":" && words.size() < 4096) {
      std::vector<int> ring;
      for (std::size_t w = 3; w < words.size(); ++w) {
        const auto rank = count_in(words[w]);
        if (!rank) return;  // a connection, below
        if (ring.size() < most_ring_ranks) ring.push_back(*rank);
      }
      if (said.rings.size() < most_rings && room_for(ring.size()))
        said.rings.push_back(std::move(ring));
    }
    if (words[0] != "Pattern" || words.size() < 3) return;
    const auto channels = count_in(behind(words, "nChannels"), 1024);
    std::string_view rates = behind(words, "bw");
    if (rates.empty()) rates = behind(words, "speed");  // before 2.12
    const auto [intra, inter] = halves(rates);
    std::string_view path = behind(words, "type");
    if (!path.empty() && path.back() == ',') path.remove_suffix(1);
    const auto intra_rate = real_in(intra), inter_rate = real_in(inter);
    if (!channels || *channels == 0 || !intra_rate || !inter_rate) return;
    NcclSearch search{*channels, *intra_rate, *inter_rate, kept(halves(path).first)};
    if (words[1] == "4,") said.ring_search = search;  // src/include/graph.h: 4 is a ring
    if (words[1] == "1," || words[1] == "2," || words[1] == "3,") said.tree_search = search;
  }

  /// "+ PCI[24.0] - GPU/1A000 (0)", "+ NVL[240.0] - NVS/0", "+ NET[25.0] - NET/0 (0/1/25.000000)".
  void take_topology(const LineWords& words, RankLines& open) {
    NcclLog& said = open.said;
    // "CPU/0 (1/2/-1)": x86, AMD. Source: NCCL, src/graph/topo.h.
    if (words[0].starts_with("CPU/") && words.size() > 1) {
      if (words[1].starts_with("(1/1/")) said.cpu = "intel";
      if (words[1].starts_with("(1/2/")) said.cpu = "amd";
    }
    const auto plus = std::find(words.begin(), words.end(), "+");
    if (words.end() - plus < 4 || *(plus + 2) != "-") return;
    const std::string_view link = *(plus + 1), to = *(plus + 3);
    const std::size_t bracket = link.find('[');
    if (bracket == std::string_view::npos || !link.ends_with(']')) return;
    const auto rate = real_in(link.substr(bracket + 1, link.size() - bracket - 2));
    const std::string_view kind = link.substr(0, bracket);
    if (kind == "PCI" && to.starts_with("GPU/")) open.gpu_nvlink = 0;
    if (kind == "PCI") open.nic_slot = to.starts_with("NIC/") ? rate.value_or(0) : 0;
    if (kind == "NVL" && rate) {
      open.gpu_nvlink += *rate;
      said.nvlink_gb_per_s = std::max(said.nvlink_gb_per_s, open.gpu_nvlink);
      said.nvswitch = said.nvswitch || to.starts_with("NVS/");
    }
    if (kind == "NET" && to.starts_with("NET/") && words.end() - plus > 4) {
      const std::string_view about = *(plus + 4);  // "(guid/port/rate)"
      if (const auto of_port = real_in(about.substr(about.rfind('/') + 1)))
        if (NcclNic* nic = entry_of(said.net_nodes, kept(to))) *nic = {of_port, open.nic_slot};
    }
  }

  /// "NET/IB : Using [0]mlx5_0:1/IB ...", "NET/IB: [0] mlx5_0:uverbs0:1/RoCE ... speed=400000".
  void take_network(const LineWords& words, RankLines& open) {
    NcclLog& said = open.said;
    if (words[0] == "Using" && words.size() > 2 && words[1] == "network") {
      std::string name;
      for (std::size_t w = 2; w < std::min<std::size_t>(words.size(), 6); ++w)
        name += (name.empty() ? "" : " ") + kept(words[w]);
      said.network = name;
    }
    if (!words[0].starts_with("NET/IB")) return;
    for (std::string_view word : words) {
      while (!word.empty() && (word.back() == ',' || word.back() == '}' || word.back() == ';'))
        word.remove_suffix(1);
      const bool ib = word.ends_with("/IB"), roce = word.ends_with("/RoCE");
      if (word == words[0] || (!ib && !roce)) continue;
      said.infiniband = said.infiniband || ib;
      said.roce = said.roce || roce;
      word = word.substr(0, word.rfind('/'));
      if (const std::size_t brackets = word.find_last_of("]{"); brackets != std::string_view::npos)
        word.remove_prefix(brackets + 1);
      // "mlx5_0:1" and "mlx5_0:uverbs0:1" are port 1 of one device.
      const std::string name = kept(word.substr(0, word.find(':'))) +
                               kept(word.substr(std::min(word.size(), word.rfind(':'))));
      NcclNic* nic = entry_of(said.nics, name);
      for (const std::string_view other : words)
        if (nic != nullptr && other.starts_with("speed="))
          if (const auto megabits = count_in(other.substr(6), 100'000'000);
              megabits && *megabits > 0)
            nic->gb_per_s = *megabits / 8000.0;
    }
  }

  /// "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA": the sender's side counts.
  void take_connection(const LineWords& words, RankLines& open) {
    const auto via = std::find(words.begin(), words.end(), "via");
    const auto arrow = std::find(words.begin(), words.end(), "->");
    if (words[0] != "Channel" || words.end() - via < 2 || arrow == words.begin() ||
        words.end() - arrow < 2 || !rank_in(*(arrow - 1)) || !rank_in(*(arrow + 1)))
      return;
    if (has_words(words, {"[receive]"})) return;
    std::string_view name = *(via + 1);
    std::string all;  // without which card it is
    while (!name.empty()) {
      const auto [part, rest] = halves(name);
      if (part.empty() || part.find_first_not_of("0123456789") != std::string_view::npos)
        all += (all.empty() ? "" : "/") + kept(part);
      name = rest;
    }
    if (std::int64_t* count = entry_of(open.said.transports, all)) ++*count;
  }

  /// Columns stand between bars; up to 2.16 a header names them "Tree/ LL", later two lines do.
  void take_table(std::string_view text, RankLines& open) {
    if (text.find('|') == std::string_view::npos) return;
    std::vector<std::string> cells;
    for (std::size_t at = 0; at < text.size() && cells.size() <= most_columns;) {
      const std::size_t bar = std::min(text.find('|', at), text.size());
      std::string cell;
      for (const char c : text.substr(at, bar - at))
        if (c != ' ' && cell.size() < longest_word) cell += c;
      cells.push_back(printable(cell));
      at = bar + 1;
    }
    if (cells.size() < 2) return;
    const std::string head = cells.front();
    cells.erase(cells.begin());
    if (head == "Latency/AlgBw") {
      open.columns.clear();
      for (const std::string& cell : cells)
        open.columns.emplace_back(halves(cell).first, halves(cell).second);
    } else if (head == "Algorithm") {
      open.algorithms = cells;
    } else if (head == "Protocol") {
      open.columns.clear();
      for (std::size_t c = 0; c < cells.size() && c / 3 < open.algorithms.size(); ++c)
        if (!cells[c].empty()) open.columns.emplace_back(open.algorithms[c / 3], cells[c]);
    } else if (head != "MaxNThreads") {
      take_row(head, cells, open);
    }
  }

  void take_row(const std::string& operation, const std::vector<std::string>& cells,
                RankLines& open) {
    constexpr std::array<std::string_view, 5> operations{"Broadcast", "Reduce", "AllGather",
                                                         "ReduceScatter", "AllReduce"};
    if (std::find(operations.begin(), operations.end(), operation) == operations.end()) return;
    for (std::size_t c = 0; c < std::min(cells.size(), open.columns.size()); ++c) {
      const auto [latency, rate] = halves(cells[c]);
      const auto us = real_in(latency), gb = real_in(rate);
      const auto& [algorithm, protocol] = open.columns[c];
      if (us && gb && open.said.table.size() < most_of_each && room_for(1))
        open.said.table.push_back({operation, algorithm, protocol, *us, *gb});
    }
  }

  /// "AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}", and what COLL says.
  void take_collective(const LineWords& words, RankLines& open) {
    NcclLog& said = open.said;
    if (const auto at = find_words(words, {"Bytes", "->", "Algo"}); at && *at > 0) {
      const auto bytes = parse_integer(words[*at - 1]);
      std::string_view operation = *at > 1 ? words[*at - 2] : std::string_view();
      if (!operation.empty()) operation.remove_suffix(operation.back() == ':' ? 1 : 0);
      const std::string_view algorithm = behind(words, "Algo"), protocol = behind(words, "proto");
      if (!bytes || *bytes < 0 || *bytes > most_bytes || algorithm.empty() || protocol.empty())
        return;
      NcclTaken* taken = entry_of(said.taken, std::pair(kept(operation), *bytes));
      if (taken == nullptr) return;
      ++taken->times;
      taken->algorithm = algorithm_named(algorithm);
      taken->protocol = protocol_named(protocol);
      for (const std::string_view word : words)
        if (const std::size_t dots = word.rfind("..");
            word.starts_with("channel{") && word.ends_with('}') && dots > 16)
          if (const auto last = count_in(word.substr(dots + 2, word.size() - dots - 3), 1024))
            taken->channels = *last + 1;
    }
    if (words.size() > 2 && words[0].ends_with(':') && words[1] == "opCount") {
      const auto count = parse_integer(behind(words, "count"));
      const auto type = count_in(behind(words, "datatype"), 64);
      const std::int64_t each = type ? bytes_of_type(*type) : 0;
      if (!count || *count < 0 || each == 0 || *count > most_bytes / each) return;
      const std::string operation = kept(words[0].substr(0, words[0].size() - 1));
      if (std::int64_t* calls = entry_of(said.calls, std::pair(operation, *count * each))) ++*calls;
    }
  }

  /// What another rank says of the same communicator.
  void merge(const RankLines& rank, NcclLog& log) {
    const NcclLog& said = rank.said;
    const auto first = [](auto& all, const auto& next) {
      if (all == std::remove_cvref_t<decltype(all)>{}) all = next;
    };
    first(log.ranks, said.ranks);
    first(log.nodes, said.nodes);
    log.ranks_per_node = std::max(log.ranks_per_node, said.ranks_per_node);
    if (rank.rank) log.seen.insert(*rank.rank);
    merge_host(rank, log);
    for (const std::string& host : said.hosts)
      if (log.hosts.size() < most_of_each) log.hosts.insert(host);
    first(log.channels, said.channels);
    if (log.rings.empty()) log.rings = said.rings;
    first(log.trees, said.trees);
    for (const auto& [name, count] : said.transports)
      if (std::int64_t* all = entry_of(log.transports, name)) *all += count;
    if (!log.ring_search) log.ring_search = said.ring_search;
    if (!log.tree_search) log.tree_search = said.tree_search;
    if (log.network.empty()) log.network = said.network;
    if (log.cpu.empty()) log.cpu = said.cpu;
    log.infiniband = log.infiniband || said.infiniband;
    log.roce = log.roce || said.roce;
    if (log.table.empty()) log.table = said.table;
    if (log.taken.empty()) log.taken = said.taken;
    if (log.calls.empty()) log.calls = said.calls;
    log.environment.insert(said.environment.begin(), said.environment.end());
  }

  /// Ranks come in their order.
  void merge_host(const RankLines& rank, NcclLog& log) {
    const NcclLog& said = rank.said;
    NcclHost* host =
        entry_of(log.of_hosts, said.hosts.empty() ? std::string() : *said.hosts.begin());
    if (host == nullptr) return;
    if (host->seen == 0) host->first_rank = rank.rank.value_or(0);
    ++host->seen;
    host->ranks = std::max(host->ranks, said.ranks_per_node);
    host->nvlink_gb_per_s = std::max(host->nvlink_gb_per_s, said.nvlink_gb_per_s);
    host->nvswitch = host->nvswitch || said.nvswitch;
    if (host->nics.empty()) host->nics = said.nics;
    if (host->net_nodes.empty()) host->net_nodes = said.net_nodes;
  }

  std::unordered_map<std::string, std::vector<RankLines>> processes_;
  std::size_t communicators_ = 0, room_ = most_entries;
  std::string version_;
  bool left_out_ = false;
};

}  // namespace

NcclLog read_nccl_log(const std::vector<std::string>& files) {
  NcclLogReader reader;
  for (const std::string& file : files) {
    std::error_code error;
    if (!std::filesystem::exists(file, error))
      throw InputError(fmt::format("{}: no such file", file));
    if (!std::filesystem::is_regular_file(file, error))
      throw InputError(fmt::format("{}: not a file", file));
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw InputError(fmt::format("{}: cannot be read", file));
    std::array<char, 65536> line{};
    while (stream.getline(line.data(), line.size()) || stream.gcount() > 0) {
      if (stream.fail() && !stream.eof()) {  // NCCL prints no line that is so long
        stream.clear();
        stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
        continue;
      }
      reader.take(std::string_view(line.data()));
    }
  }
  const std::string& name = files.front();
  if (!reader.any_line())
    throw InputError(fmt::format(
        "{}: no line of NCCL in it: expected the output of a job with NCCL_DEBUG=INFO", name));
  NcclLog log = reader.finish();
  if (log.ranks == 0)
    throw InputError(
        fmt::format("{}: no communicator in it: expected lines such as \"comm 0x1 rank 0 nranks 8 "
                    "... Init COMPLETE\": set NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING or take it out",
                    name));
  return log;
}

std::vector<int> ranks_of_nodes(const NcclLog& log, int nodes) {
  const bool all_seen = log.seen.size() == static_cast<std::size_t>(log.ranks);
  std::vector<std::pair<int, int>> by_first;  // first rank, ranks
  std::int64_t left = log.ranks;
  for (const auto& [name, host] : log.of_hosts) {
    const int ranks = host.ranks > 0 ? host.ranks : all_seen ? host.seen : 0;
    if (ranks == 0) return {};
    by_first.emplace_back(host.first_rank, ranks);
    left -= ranks;
  }
  const auto missing =
      static_cast<std::int64_t>(nodes) - static_cast<std::int64_t>(by_first.size());
  if (missing == 1 && left > 0)
    by_first.emplace_back(log.ranks, static_cast<int>(left));
  else if (missing != 0 || left != 0)
    return {};
  std::sort(by_first.begin(), by_first.end());
  std::vector<int> ranks;
  for (const auto& node : by_first) ranks.push_back(node.second);
  return ranks;
}

}  // namespace ddpsim
