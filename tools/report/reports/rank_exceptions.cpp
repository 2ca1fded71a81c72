#include "tools/report/reports/rank_exceptions.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/cost/collective.hpp"
#include "tools/report/records/cluster_fields.hpp"

namespace ddpsim {
namespace {

/// "computes 1.3 times as long", "pause for 200 ms at the start of a step".
std::string pace_text(const RankException& exception) {
  const bool several = exception.ranks > 1;
  const std::string s = several ? "" : "s";
  const std::string when = exception.at == 0
                               ? "at the start of a step"
                               : fmt::format("at {:g} % of {} computation", 100 * exception.at,
                                             several ? "their" : "its");
  const std::string pause =
      exception.pause > Duration::zero()
          ? fmt::format("pause{} for {} {}", s, to_string(exception.pause), when)
          : "";
  if (exception.compute == 1 && !pause.empty()) return pause;
  const std::string compute = fmt::format("compute{} {:g} times as long", s, exception.compute);
  return pause.empty() ? compute : compute + " and " + pause;
}

/// "rank 5 computes 1.3 times as long"; "" of one that names NICs alone.
std::string pace_of_ranks(const RankException& exception) {
  if (exception.nic && !exception.computes_otherwise()) return "";
  return fmt::format("{}{} {}",
                     !exception.node       ? ""
                     : exception.ranks > 1 ? "the ranks of "
                                           : "the rank of ",
                     name_of(exception), pace_text(exception));
}

/// What `text_of` says of each exception, the first of many; "" where it says nothing.
template <typename TextOf>
std::string first_of(const CalibratedCluster& cluster, const TextOf& text_of) {
  constexpr int most = 6;
  std::string text;
  int said = 0, more = 0;
  for (const RankException& exception : cluster.exceptions) {
    const std::string one = text_of(exception);
    if (one.empty()) continue;
    if (said == most) {
      ++more;
      continue;
    }
    ++said;
    text += (text.empty() ? "" : "; ") + one;
  }
  return more == 0 ? text : text + fmt::format("; and {} more", more);
}

/// The law of the cluster as it is, and without exceptions of NICs.
struct NicLaws {
  CollectiveLaw with, without;
};
NicLaws nic_laws(const CalibratedCluster& cluster) {
  CalibratedCluster even = cluster;
  for (RankException& exception : even.exceptions) exception.nic.reset();
  const CollectiveLaw with(cluster);
  return {with, CollectiveLaw(even, with.nvls_tree_sizes())};
}

/// Do all-reduces of 1 MiB and more take as long without any exceptions of NICs?
bool nics_are_not_felt(const CalibratedCluster& cluster) {
  constexpr double felt = 0.002;
  const NicLaws laws = nic_laws(cluster);
  for (Bytes size = MiB; size <= GiB; size = 2 * size)
    if (in_seconds(laws.without.all_reduce(size).time()) <
        (1 - felt) * in_seconds(laws.with.all_reduce(size).time()))
      return false;
  return true;
}

/// "the NICs of node 3 carry 12.5 GB/s, which sets the pace of the network"; "" where they have no
/// effect.
std::string nics_text(const CalibratedCluster& cluster, const RankException& exception) {
  if (!exception.nic || !why_nic_idles(cluster, *exception.nic).empty()) return "";
  const std::string carry =
      fmt::format("the NICs of {} carry {}, ", name_of(exception), to_string(*exception.nic));
  const NicLaws laws = nic_laws(cluster);
  const CollectiveCost large = laws.with.all_reduce(GiB);
  const CollectiveBound bound = large.choice.bound;
  if (bound == CollectiveBound::nic || bound == CollectiveBound::unknown)
    return carry + "which sets the pace of the network";
  const double longer = in_seconds(large.time()) / in_seconds(laws.without.all_reduce(GiB).time());
  return carry + fmt::format("of which all-reduces of 1 GiB take {:.2g} % longer",
                             100 * std::max(0.0, longer - 1));
}

}  // namespace

std::string why_nic_idles(const CalibratedCluster& cluster, Bandwidth nic) {
  const bool is_table = CollectiveLaw(cluster).name() == std::string("table"),
             calibrated =
                 is_table && cluster.calibration && !cluster.calibration->all_reduce.empty();
  if (is_table && !calibrated)
    return "all-reduces take what was measured; take nic out, or the measured all-reduces";
  if (!calibrated && nic >= cluster.inter_node.bandwidth)
    return fmt::format("the NICs of inter_node carry no more ({})",
                       to_string(cluster.inter_node.bandwidth));
  for (const RankException& exception : cluster.exceptions)
    if (exception.nic && *exception.nic < nic) return "another node has slower ones";
  return nics_are_not_felt(cluster)
             ? "all-reduces of 1 MiB and more take as long over the NICs of the other nodes"
             : "";
}

std::string exceptions_text(const CalibratedCluster& cluster) {
  return first_of(cluster, [&](const RankException& exception) {
    const std::string ranks = pace_of_ranks(exception), nics = nics_text(cluster, exception);
    return ranks + (ranks.empty() || nics.empty() ? "" : " and ") + nics;
  });
}

std::string slow_ranks_text(const CalibratedCluster& cluster) {
  return first_of(cluster, pace_of_ranks);
}

std::string slow_nics_text(const CalibratedCluster& cluster) {
  return first_of(cluster,
                  [&](const RankException& exception) { return nics_text(cluster, exception); });
}

Record exception_record(const RankException& exception) {
  Record record;
  if (exception.node)
    record.add(fields::exception_node, *exception.node);
  else
    record.add(fields::exception_rank, exception.rank);
  record.add(fields::exception_compute, exception.compute);
  if (exception.nic) record.add(fields::exception_nic, exception.nic->bytes_per_second);
  if (exception.pause > Duration::zero())
    record.add(fields::exception_pause, in_ms(exception.pause))
        .add(fields::exception_at, exception.at);
  return record;
}

}  // namespace ddpsim
