#include "scenarios/reader/cluster/exceptions_reader.hpp"

#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

constexpr int last_rank = 100'000 * 1024 - 1, last_node = 99'999;

const Map<GivenException>& exception_map() {
  static const auto map =
      Map<GivenException>("exception", "A rank, or the ranks of a node, that differ from the rest.")
          .key("rank", value::whole(0, last_rank), &GivenException::rank,
               {.meaning = "The rank that differs, counted from 0.",
                .otherwise = "the ranks of `node`",
                .example = "5"})
          .key("node", value::whole(0, last_node), &GivenException::node,
               {.meaning = "The node whose ranks, or whose NICs, differ, counted from 0.",
                .otherwise = "`rank` alone",
                .example = "3"})
          .key("compute", value::times(0.1, 100),
               [](auto& given) -> auto& { return given.differs.compute; },
               {.meaning = "The rank's computation takes so many times as long as the device's.",
                .example = "1.3x"})
          .key(
              "nic", value::bandwidth(), [](auto& given) -> auto& { return given.differs.nic; },
              {.meaning =
                   "What each NIC of the node carries, where that is less than the `bandwidth` of "
                   "`inter_node`. All collectives between nodes then take as long as if every node "
                   "had such NICs. A node's entry of nothing else may stand beside those of its "
                   "ranks.",
               .otherwise = "as the NICs of other nodes",
               .example = "100 Gbit/s"})
          .key("pause", value::time_or_zero(),
               [](auto& given) -> auto& { return given.differs.pause; },
               {.meaning =
                    "In each step the host of the rank stands still for so long, and enqueues "
                    "nothing. What its device was given before goes on.",
                .unset = "0 ms",
                .example = "200 ms"})
          .key("at", value::share(0, 1), [](auto& given) -> auto& { return given.differs.at; },
               {.meaning =
                    "The share of what forward, backward and optimizer compute by which the pause "
                    "comes: before the kernel that reaches it is enqueued.",
                .example = "40 %"})
          .needs({"rank", "node"}, "missing key \"rank\" or \"node\": it says which ranks differ")
          .needs({"compute", "nic", "pause"},
                 "missing key \"compute\", \"nic\" or \"pause\": it says what differs")
          .excludes("node", {"rank"}, "rank and node exclude each other: write an entry for each")
          .excludes("nic", {"rank"}, "the NICs are the node's: write node in place of rank")
          .check([](GivenException&, const YamlMap& keys) {
            if (keys.has("at") && !keys.has("pause"))
              keys.at("at").fail("at says when a pause comes: write pause as well");
          });
  return map;
}

/// What else to write where the exceptions are those of another number of ranks.
constexpr const char* without_exceptions =
    "; --set cluster.exceptions=[] leaves the exceptions out";

constexpr const char* list_of_exceptions = "a list such as [{rank: 5, compute: 1.3x}]";

/// Which ranks it is of; none where it is of a node's NICs alone.
RankException with_ranks(const GivenException& given, const YamlMap& keys, const Cluster& cluster,
                         const char* advice) {
  RankException exception = given.differs;
  if (given.node) {
    if (*given.node >= cluster.nodes)
      keys.at("node").fail(fmt::format("expected a node from 0 to {}, as there {} {}, got {}{}",
                                       cluster.nodes - 1, cluster.nodes == 1 ? "is" : "are",
                                       cluster.nodes, *given.node, advice));
    exception.node = given.node;
    exception.rank = cluster.ranks_per_node.first_of(*given.node);
    const bool nics_alone = exception.nic && !exception.computes_otherwise();
    exception.ranks = nics_alone ? 0 : cluster.ranks_per_node.of_node(*given.node);
  } else {
    exception.rank = given.rank.value_or(0);
    if (exception.rank >= cluster.ranks())
      keys.at("rank").fail(fmt::format("expected a rank from 0 to {}, as there {} {}, got {}{}",
                                       cluster.ranks() - 1, cluster.ranks() == 1 ? "is" : "are",
                                       cluster.ranks(), exception.rank, advice));
  }
  if (exception.nic && cluster.nodes == 1)
    keys.at("nic").fail(fmt::format(
        "nothing leaves the only node: take nic out, or write nodes and inter_node{}", advice));
  constexpr double least = 1e3;  // as of a link
  if (exception.nic && exception.nic->bytes_per_second < least)
    keys.at("nic").fail(
        fmt::format("expected a rate such as \"100 Gbit/s\" and at least 1 kB/s, got \"{}\"",
                    shown(keys.at("nic").scalar())));
  return exception;
}

}  // namespace

Value<std::vector<GivenException>> exceptions_value() {
  return value::list_of(value::mapping(&exception_map), list_of_exceptions);
}

std::vector<RankException> placed(const std::vector<GivenException>& given, const Yaml& list,
                                  const Cluster& cluster, bool resized) {
  const char* const advice = resized ? without_exceptions : "";
  const std::vector<Yaml> entries = list.list(list_of_exceptions);
  std::vector<RankException> all;
  std::map<int, int> taken;  // the first rank of each, and the one behind the last
  std::set<int> nodes;       // that have an entry of their own
  int otherwise = 0;         // ranks that compute otherwise
  for (std::size_t i = 0; i < given.size(); ++i) {
    const RankException exception = with_ranks(given[i], YamlMap(entries[i]), cluster, advice);
    if (exception.node && !nodes.insert(*exception.node).second)
      entries[i].fail(fmt::format(
          "{} has an entry already: write one entry for each node, with all that differs",
          name_of(exception)));
    if (exception.ranks == 0) {
      all.push_back(exception);
      continue;
    }
    const int begin = exception.rank, end = begin + exception.ranks;
    const auto next = taken.lower_bound(begin);
    const bool met = (next != taken.end() && next->first < end) ||
                     (next != taken.begin() && std::prev(next)->second > begin);
    if (met)
      entries[i].fail(fmt::format(
          "{} has an entry already: write one entry for each rank, with all that differs",
          exception.node ? "a rank of " + name_of(exception) : name_of(exception)));
    taken.emplace(begin, end);
    if (exception.computes_otherwise()) otherwise += exception.ranks;
    all.push_back(exception);
  }
  if (otherwise > 0 && otherwise == cluster.ranks())
    list.fail(
        fmt::format("{} differ{} from the device: write as the device what most ranks are, "
                    "and leave these out{}",
                    otherwise == 1 ? "the only rank" : fmt::format("all {} ranks", otherwise),
                    otherwise == 1 ? "s" : "", advice));
  return all;
}

}  // namespace ddpsim
