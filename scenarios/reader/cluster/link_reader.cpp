#include "scenarios/reader/cluster/link_reader.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <tuple>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/format/file_end.hpp"
#include "scenarios/reader/measured/doubts.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

using Point = AllReduceTable::value_type;

const Map<Point>& point_map() {
  static const auto map =
      Map<Point>("all_reduce_point", "A measured all-reduce of one size.")
          .key(
              "bytes", value::size_or_count(), &Point::first,
              {.meaning = "What each rank hands to the all-reduce. Sizes grow from entry to entry.",
               .example = "1 MiB",
               .required = true})
          .key("time", value::time(), &Point::second,
               {.meaning = "How long the all-reduce takes, from the last rank's arrival.",
                .example = "40 us",
                .required = true});
  return map;
}

/// `all_reduce: [{bytes: 4096 B, time: 600 us}, ...]`.
AllReduceTable read_table(const Yaml& given) {
  AllReduceTable table;
  for (const Yaml& item :
       given.list("a list such as [{bytes: 1 MiB, time: 40 us}, ...] or the path of a CSV file")) {
    const Point point = point_map().read(item);
    if (!table.empty() && point.first <= table.back().first)
      YamlMap(item).find("bytes")->fail("sizes must grow from entry to entry");
    table.push_back(point);
  }
  if (table.empty()) given.fail("expected at least one entry such as {bytes: 1 MiB, time: 40 us}");
  return table;
}

/// `all_reduce: table.csv`: lines "bytes,time_us,..."; lines starting with '#' are comments, and
/// the first other line names the columns.
AllReduceTable read_csv_table(const Yaml& given) {
  const std::filesystem::path path = given.folder() / given.text("the path of a CSV file");
  if (const std::string reason = unreadable(path); !reason.empty())
    given.fail(fmt::format("{}: {}", path.string(), reason));
  std::ifstream file(path);
  AllReduceTable table;
  std::size_t number = 0;
  bool header = false;
  const auto fail = [&](std::string_view problem) {
    throw InputError(fmt::format("{}:{}:1: {}", path.string(), number, problem));
  };
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const auto comma = line.find(',');
    if (comma == std::string::npos) fail("expected \"bytes,time_us\"");
    std::string first = line.substr(0, comma);
    std::string second = line.substr(comma + 1);
    second = second.substr(0, second.find(','));
    if (!header) {
      if (first != "bytes" || second != "time_us")
        fail("expected the columns \"bytes,time_us\" to be named first");
      header = true;
      continue;
    }
    const auto size = parse_integer(first);
    const auto time = parse_number(second);
    const Duration duration =
        time && std::abs(*time) <= 1e9 ? from_seconds(*time * 1e-6) : Duration{};
    if (!size || *size <= 0 || duration <= Duration::zero())
      fail("expected a size in bytes and a time in microseconds, both above zero");
    if (!table.empty() && *size <= table.back().first.count)
      fail("sizes must grow from line to line");
    table.emplace_back(Bytes{*size}, duration);
  }
  if (table.empty()) given.fail(fmt::format("{} holds no table", path.string()));
  return table;
}

Value<AllReduceTable> table_value() {
  const auto list = value::list_of(value::mapping(&point_map), "");
  return {{value::list(list.type.front().items, 1), value::form(Form::Kind::path)},
          [](const Yaml& given) {
            AllReduceTable table = given.is_list() ? read_table(given) : read_csv_table(given);
            if (const std::string why = why_no_link(table); !why.empty()) given.fail(why);
            return table;
          },
          list.write};
}

Map<Link> make_link_map() {
  Map<Link> map(
      "link",
      "What connects the devices of a node, or nodes: by its latency and bandwidth, by what "
      "NCCL knows of its kind, or by a measured table of all-reduces.");
  map.key_constant("format", "ddpsim.link/1",
                   {.meaning = "Marks a file as a link profile. A link of a scenario or of the "
                               "catalogue does without.",
                    .otherwise = "not marked",
                    .example = "ddpsim.link/1"});
  add_written_by(map);
  add_entry_keys(map, link_entries, &Link::source);
  map.key("kind",
          value::one_of(all_link_kinds,
                        {"nothing is known but latency and bandwidth",
                         "NVIDIA's links between GPUs", "PCI Express", "Ethernet", "InfiniBand"}),
          &Link::kind,
          {.meaning = "What sort of link it is. NCCL's model of collectives is used where it is "
                      "known."})
      .key("latency", value::time_or_zero(), &Link::latency,
           {.meaning =
                "The latency of one step of a ring, from rank to rank. With NCCL the steps of "
                "its other algorithms and protocols follow from it.",
            .otherwise = "what NCCL counts for the kind: 3.4 us on NVLink, 5.7 us on PCIe, 14 us "
                         "between nodes; none for a link of no kind",
            .example = "5 us",
            .source = "NCCL 2.28.9, src/graph/tuning.cc"})
      .key_taken("bandwidth", value::bandwidth(),
                 [](Link& link, Bandwidth bandwidth) {
                   // A base's figure is of the base's bandwidth: the share stays.
                   const double base = link.bandwidth.bytes_per_second;
                   if (base > 0)
                     link.nccl_bandwidth.bytes_per_second *= bandwidth.bytes_per_second / base;
                   link.bandwidth = bandwidth;
                 },
                 &Link::bandwidth,
                 {.meaning = "The bandwidth per direction, of each device within a node or of each "
                             "NIC between nodes.",
                  .otherwise = "needed, unless there is a table",
                  .example = "450 GB/s"})
      .key("nccl_bandwidth", value::bandwidth(), &Link::nccl_bandwidth,
           {.meaning =
                "The bandwidth of a device that NCCL assumes when it chooses how to communicate.",
            .otherwise = "as `bandwidth`; of a link with a `base`, the same share of it as there",
            .example = "370.8 GB/s",
            .source = "NCCL 2.28.9, src/graph/topo.h"})
      .key(
          "carries", value::share(0.01, 1), &Link::carries,
          {.meaning =
               "The share of the bandwidth that large messages of NCCL's collectives reach, where "
               "it is known of this network. The law of ports takes it in place of its own; the "
               "laws alpha-beta and gloo have no such share.",
           .otherwise =
               "what public sweeps show of the kind: 0.79 of NVLink, 0.82 of PCIe, 0.92 of "
               "Ethernet and InfiniBand; of PCIe between GPUs that reach each other through the "
               "host's memory, 2.6 GB/s (hosts have 2.2 to 9.8) of GPUs that have PCIe 3 or 4, and "
               "0.45 of those of PCIe 5",
           .example = "0.6"})
      .key("nvswitch", value::boolean(), &Link::nvswitch,
           {.meaning = "Whether every GPU reaches every other at full speed through a switch, so "
                       "that NCCL's NVLS algorithms can exist."})
      .key("joins", value::whole(2, 1024), &Link::joins,
           {.meaning = "How many devices of a node it can join, such as the two of a bridge. More "
                       "get a note, and their steps are predicted as if it joined all.",
            .otherwise = "any number",
            .example = "2"})
      .key("nics", value::whole(1, 1024), &Link::nics,
           {.meaning = "How many network cards a node has.",
            .otherwise = "one per rank for InfiniBand, one per node for others; in the place of a "
                         "ready cluster's network as many as that has",
            .example = "8"})
      .key("ranks", value::whole(1, 1000000), &Link::table_ranks,
           {.meaning = "How many ranks the table was measured with. For another number of ranks it "
                       "is scaled as a ring's. Of one rank it is refused where several would use "
                       "it: nothing crossed a link.",
            .otherwise = "the table holds for the cluster's ranks as it is",
            .example = "8"})
      .key(
          "nodes", value::whole(1, 100000), &Link::table_nodes,
          {.meaning = "How many nodes these ranks were on. A table of several nodes holds for what "
                      "joins nodes: `--link` gives it to `inter_node`.",
           .otherwise = "nobody knows: `--link` takes the ranks as those of one node",
           .example = "4"})
      .key("smallest_node", value::whole(1, 1000000), &Link::table_smallest_node,
           {.meaning = "How many ranks the smallest of these nodes had, where they differed: on "
                       "nodes of other sizes the table is used with a note.",
            .otherwise = "`ranks` over `nodes`",
            .example = "4"})
      .key("all_reduce", table_value(), &Link::all_reduce,
           {.meaning = "Measured all-reduces by size, as a list or as a CSV file whose first "
                       "columns are bytes and time_us. Between two points the time is a "
                       "latency and a bandwidth; below the first the first two go on, above the "
                       "last the line from a point of half its size, or the best rate. A table "
                       "that falls as a whole, or gives sizes that are all but alike very unlike "
                       "times, is refused.",
            .otherwise = "nothing was measured",
            .example = "[{bytes: 4096, time: 600 us}, {bytes: 1 MiB, time: 2 ms}]"});
  add_doubts(map, &Link::doubts);
  map.check([](const Link& link, const YamlMap& given) {
    if (link.table_nodes > link.table_ranks && link.table_ranks > 0 && given.has("nodes"))
      given.at("nodes").fail(fmt::format("{} ranks are on at most as many nodes, got {}",
                                         link.table_ranks, link.table_nodes));
    const int most = link.table_ranks / std::max(link.table_nodes, 1);
    if (most > 0 && link.table_smallest_node > most && given.has("smallest_node"))
      given.at("smallest_node")
          .fail(fmt::format("the smallest of {} nodes with {} ranks has at most {}, got {}",
                            std::max(link.table_nodes, 1), link.table_ranks, most,
                            link.table_smallest_node));
  });
  map.needs_also({{.key = "bandwidth"}, {.key = "all_reduce"}, {.key = "base"}});
  add_end(map, "ddpsim.link/1");
  return map;
}

}  // namespace

std::string why_no_link(const AllReduceTable& table) {
  const auto& [least, first] = table.front();
  const auto& [most, last] = table.back();
  constexpr double noise = 2.0 / 3, most_superlinear = 2;
  if (in_seconds(last) < noise * in_seconds(first))
    return fmt::format(
        "{} in {} and {} in {}: more bytes take less time, so these are no times of a link; "
        "measure again, the ranks arriving together",
        to_string(least), to_string(first), to_string(most), to_string(last));
  for (std::size_t i = 1; i < table.size(); ++i) {
    const auto& [before, time_before] = table[i - 1];
    const auto& [size, time] = table[i];
    const double bytes = static_cast<double>(size.count) / static_cast<double>(before.count);
    constexpr double alike = 1.1;
    if (bytes < alike && in_seconds(time) > most_superlinear * bytes * in_seconds(time_before))
      return fmt::format(
          "{} in {} and {} in {}: sizes that are all but alike differ too much, so one of the two "
          "waited for ranks: take it out, or measure again",
          to_string(before), to_string(time_before), to_string(size), to_string(time));
  }
  return "";
}

const Map<Link>& link_map() {
  static const Map<Link> map = make_link_map();
  return map;
}

namespace {

/// Slower than any link: a unit that was mistaken, and next to nothing where laws divide by it.
void check_bandwidth(const Link& link, const std::vector<Entry>& entries) {
  constexpr double least = 1e3;
  if (link.bandwidth.bytes_per_second >= least) return;
  for (const Entry& entry : entries)
    if (const auto written = YamlMap(entry.yaml).find("bandwidth"))
      written->fail(
          fmt::format("expected a rate such as \"50 GB/s\" and at least 1 kB/s, got \"{}\"",
                      shown(written->scalar())));
}

/// Has the link, or one that it is based on, this key?
bool is_said(const std::string& key, const std::vector<Entry>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return YamlMap(entry.yaml).has(key); });
}

/// By the keys of entry `first` and of those it is based on.
Link read_link_layers(const std::vector<Entry>& entries, std::size_t first) {
  Link link;
  const std::vector<Entry> some(entries.begin() + static_cast<std::ptrdiff_t>(first),
                                entries.end());
  link_map().read(layers_of(some), link);
  if (!is_said("latency", some)) link.latency = usual_latency(link.kind);
  return link;
}

/// Is it the same link, wherever it stands? How many NICs a node has, and which share of the rate a
/// network carries, is of the place.
bool same_link(const Link& one, const Link& other) {
  const auto own = [](const Link& link) {
    return std::tuple(link.kind, link.latency, link.bandwidth.bytes_per_second,
                      link.nccl_bandwidth.bytes_per_second, link.nvswitch, link.joins,
                      link.table_ranks, link.table_nodes, link.table_smallest_node);
  };
  return own(one) == own(other) && one.all_reduce == other.all_reduce;
}

/// A mapping that changes an entry is told by that entry's name, with a mark where the link is
/// another by that.
std::string name_of_entries(const std::vector<Entry>& entries, const Link& link) {
  const Entry& own = entries.front();
  if (own.name != "inline" || entries.size() == 1) return own.name;
  const bool same = same_link(link, read_link_layers(entries, 1));
  return entries[1].name + std::string(same ? "" : mark_of_changes);
}

}  // namespace

Link read_link(const Yaml& given) {
  const std::vector<Entry> entries = entry_with_bases(given, link_entries);
  for (const Entry& entry : entries)
    if (const YamlMap map(entry.yaml); const auto format = map.find("format"))
      check_end_if_written(map, *format);
  Link link = read_link_layers(entries, 0);
  link.source = source_of(entries);
  check_bandwidth(link, entries);
  link.name = name_of_entries(entries, link);
  if (link.bandwidth.bytes_per_second <= 0 && link.all_reduce.empty())
    entries.front().yaml.fail("missing key \"bandwidth\" (or a measured \"all_reduce\" table)");
  return link;
}

Link read_link_in_place(const Yaml& given, const Link& had) {
  Link link = read_link(given);
  if (had.kind == LinkKind::plain || had.name.empty() || link.all_reduce.empty()) return link;
  const std::vector<Entry> entries = entry_with_bases(given, link_entries);
  if (is_said("kind", entries)) return link;
  link.kind = had.kind;
  link.kind_from = had.kind_from.empty() ? had.name : had.kind_from;
  if (!is_said("nvswitch", entries)) link.nvswitch = had.nvswitch;
  if (!is_said("latency", entries)) link.latency = had.latency;
  if (link.nccl_bandwidth.bytes_per_second <= 0)
    link.nccl_bandwidth =
        had.nccl_bandwidth.bytes_per_second > 0 ? had.nccl_bandwidth : had.bandwidth;
  return link;
}

}  // namespace ddpsim
