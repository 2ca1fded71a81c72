#include "tools/import/trace_link.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/import/trace_ranks.hpp"

namespace ddpsim {
namespace {

using BySize = std::map<Bytes, std::vector<std::size_t>>;  // buckets

/// [bucket][step] its time: the shortest of the ranks', known where all ranks' are.
std::vector<TimesTaken> times_of(const RankTraces& traces) {
  std::vector<TimesTaken> times(traces.first.steps.front().all_reduces.size());
  for (const std::vector<TimesTaken>& of_step : all_reduce_times(traces))
    for (std::size_t b = 0; b < times.size(); ++b) {
      std::optional<Duration> shortest = of_step.front()[b];
      for (const TimesTaken& of_rank : of_step)  // what is not known is less than all that is
        shortest = std::min(shortest, of_rank[b]);
      times[b].push_back(shortest);
    }
  return times;
}

/// [step in which a time of these buckets is known] The mean of the times that are known: the
/// buckets follow each other, so it is their sum that a step feels.
std::vector<Duration> means_by_step(const std::vector<TimesTaken>& times,
                                    const std::vector<std::size_t>& buckets) {
  std::vector<Duration> means;
  for (std::size_t step = 0; step < times.front().size(); ++step) {
    Duration sum{};
    std::int64_t known = 0;
    for (const std::size_t bucket : buckets)
      if (const std::optional<Duration>& time = times[bucket][step]) {
        sum += *time;
        ++known;
      }
    if (known > 0) means.push_back(sum / known);
  }
  return means;
}

/// Takes out the buckets whose time no step tells; gives the sizes of which none is left, with how
/// many buckets of a step each has.
std::map<Bytes, std::size_t> take_out_unknown(BySize& by_size,
                                              const std::vector<TimesTaken>& times) {
  std::map<Bytes, std::size_t> unknown;
  for (auto& [size, buckets] : by_size) {
    const std::size_t all = buckets.size();
    std::erase_if(buckets, [&](std::size_t bucket) {
      return std::none_of(times[bucket].begin(), times[bucket].end(),
                          [](const std::optional<Duration>& time) { return time.has_value(); });
    });
    if (buckets.empty()) unknown[size] = all;
  }
  std::erase_if(by_size, [](const auto& entry) { return entry.second.empty(); });
  return unknown;
}

std::string left_out(const std::map<Bytes, std::size_t>& unknown) {
  constexpr std::size_t most_listed = 4;
  std::vector<std::string> sizes;
  std::size_t buckets = 0;
  for (const auto& [size, count] : unknown) {
    sizes.push_back(to_string(size));
    buckets += count;
  }
  const std::string said =
      sizes.size() > most_listed
          ? fmt::format("{} sizes, {} to {},", sizes.size(), sizes.front(), sizes.back())
          : fmt::format("{}", fmt::join(sizes, ", "));
  return fmt::format(
      "left out of the link profile: all-reduces of {} ({} a step) overlapped with others in every "
      "step, so that their own time is not known",
      said, buckets);
}

/// A point for each group of sizes that are all but alike: between two of those a difference in
/// time is the ranks' arrival, not the link's. The size of a point is the mean of its buckets'.
AllReduceTable pooled(const BySize& by_size, const std::vector<TimesTaken>& times) {
  AllReduceTable table;
  std::vector<std::size_t> group;
  Bytes smallest, sum;
  const auto close = [&] {
    if (group.empty()) return;
    table.emplace_back(Bytes{sum.count / static_cast<std::int64_t>(group.size())},
                       median(means_by_step(times, group)));
    group.clear();
    sum = {};
  };
  constexpr double alike = 1.1;
  for (const auto& [size, buckets] : by_size) {
    if (!group.empty() &&
        static_cast<double>(size.count) >= alike * static_cast<double>(smallest.count))
      close();
    if (group.empty()) smallest = size;
    group.insert(group.end(), buckets.begin(), buckets.end());
    sum += Bytes{size.count * static_cast<std::int64_t>(buckets.size())};
  }
  close();
  return table;
}

/// Why the all-reduces make no link profile; "": they make one.
std::string why_none(const AllReduceTable& table) {
  if (table.empty())
    return "all-reduces overlapped with others in every step, so that the time of none is known";
  return why_no_link(table);
}

}  // namespace

std::optional<Link> link_of(TraceFinding& finding, const FoundGradients& gradients,
                            const std::string& file, const std::vector<TraceFinding>& others,
                            const std::vector<std::string>& other_files) {
  const std::vector<TimesTaken> times = times_of({finding, file, others, other_files});
  BySize by_size;
  for (std::size_t b = 0; b < times.size(); ++b) {
    const std::int64_t bytes = b < gradients.buckets.size() ? bytes_of(gradients.buckets[b]) : -1;
    if (bytes <= 0)
      throw InputError(
          fmt::format("{}: the trace does not say how large its all-reduces are: profile with "
                      "record_shapes=True, or name the network with --model",
                      file));
    by_size[Bytes{bytes}].push_back(b);
  }
  const std::map<Bytes, std::size_t> unknown = take_out_unknown(by_size, times);
  Link link;
  link.all_reduce = pooled(by_size, times);
  if (const std::string why = why_none(link.all_reduce); !why.empty()) {
    finding.notes.push_back(fmt::format(
        "no link profile is written: {}{}", why,
        others.empty() ? " (more traces, one of each rank, tell all-reduces from the last arrival)"
                       : ""));
    return std::nullopt;
  }
  constexpr int most_ranks = 1'000'000;  // of a link profile
  if (finding.group_ranks > 0 && finding.group_ranks <= most_ranks)
    link.table_ranks = finding.group_ranks;
  link.table_nodes = finding.nodes();
  const std::string counted =
      others.empty() ? std::string("from this rank's arrival, waiting for the others included")
                     : fmt::format("from the last arrival of {} ranks", others.size() + 1);
  link.source = fmt::format("all-reduces of PyTorch profiler trace {}, medians of {} step{}, {}",
                            std::filesystem::path(file).filename().string(), times.front().size(),
                            times.front().size() == 1 ? "" : "s", counted);
  finding.notes.push_back(fmt::format("the link profile: all-reduces of {} to {}, {}{}",
                                      to_string(link.all_reduce.front().first),
                                      to_string(link.all_reduce.back().first), counted,
                                      others.empty() ? " (more traces, one of each rank, tell it "
                                                       "from the last arrival)"
                                                     : ""));
  if (!unknown.empty()) finding.notes.push_back(left_out(unknown));
  if (by_size.size() > link.all_reduce.size())
    finding.notes.push_back(fmt::format(
        "all-reduces of {} sizes, of which some are all but alike, make {} point{} of "
        "the table",
        by_size.size(), link.all_reduce.size(), link.all_reduce.size() == 1 ? "" : "s"));
  if (link.all_reduce.size() < 3)
    finding.notes.emplace_back(
        "so few sizes tell no latency and no bandwidth: what `tune` says of other sizes rests on "
        "an "
        "extrapolation; nccl-tests measures all sizes");
  if (link.table_ranks == 0)
    finding.notes.emplace_back(
        "the trace does not say how many ranks there were: the link profile is taken for one of "
        "the "
        "cluster's ranks, and tells nothing if the trace is of one rank alone");
  for (std::size_t i = 1; i < link.all_reduce.size(); ++i)
    if (link.all_reduce[i].second < link.all_reduce[i - 1].second) {
      finding.notes.emplace_back(
          "some smaller all-reduces took longer than larger ones: the ranks did not arrive "
          "together, and a prediction takes the larger one's time for both");
      break;
    }
  return link;
}

}  // namespace ddpsim
