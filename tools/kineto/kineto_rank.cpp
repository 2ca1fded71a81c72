#include "tools/kineto/kineto_rank.hpp"

#include <algorithm>

#include "tools/kineto/kineto_words.hpp"

namespace ddpsim {
namespace {

/// "[0, 1]", of many the first ones and the last, as the profiler writes them.
std::string rank_list(int first, int count, int stride) {
  constexpr int most = 30;
  std::string text;
  for (int i = 0; i < std::min(count, most); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", first + i * stride);
  if (count > most) text += fmt::format(", ..., {}", first + (count - 1) * stride);
  return "[" + text + "]";
}

/// The ranks with which this one is in the group of such a collective.
std::string group_of(int rank, const CollectiveName& named) {
  const int all = named.ranks * named.stride;
  return rank_list(rank / all * all + rank % named.stride, named.ranks, named.stride);
}

}  // namespace

TracedStep::TracedStep(const Scenario& known, const Step& traced, const TracedRank& rank)
    : scenario(known),
      step(traced),
      of(traced.rank(at(rank.like))),
      where(rank),
      synchronous(known.cluster.device.synchronous),
      collectives_on_hosts(synchronous || known.cluster.through_host.has_value()) {}

CollectiveName TracedStep::collective(std::size_t index) const {
  return collective_name(scenario, of.job, task(index), of.detail_of(task(index)).choice);
}

TraceArguments TracedStep::message(const CollectiveName& named) const {
  return TraceArguments{}
      .add(kineto::collective_name, named.name)
      .add(kineto::message_elements, named.elements_in)
      .add("Out msg nelems", named.elements_out)
      .add(kineto::group_size, named.ranks)
      .add(kineto::dtype, named.dtype)
      .add("In split size", "[]")
      .add("Out split size", "[]")
      .add(kineto::group_name, named.group)
      .add("Process Group Description", named.group_is)
      .add("Process Group Ranks", group_of(where.rank, named));
}

void write_rank(TraceEvents& events, const TracedStep& step, std::int64_t& correlation) {
  const std::vector<TracedLaunch> launches = write_host(events, step, correlation);
  write_streams(events, step, launches, correlation);
  write_counters(events, step);
  write_memory(events, step);
}

}  // namespace ddpsim
