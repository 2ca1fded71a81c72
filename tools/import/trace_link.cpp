#include "tools/import/trace_link.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "scenarios/reader/input_error.hpp"

namespace ddpsim {
namespace {

/// [all-reduce] how long it took, from the end of those that were issued before it where they were
/// still under way: Gloo has two threads, and what overlaps would count twice.
std::vector<Duration> times_taken(const std::vector<FoundCollective>& all_reduces) {
  std::vector<Duration> times;
  Duration ended{};
  for (const FoundCollective& each : all_reduces) {
    times.push_back(std::max(each.end - std::max(each.start, ended), Duration{1}));
    ended = std::max(ended, each.end);
  }
  return times;
}

/// The same step of another rank; none: it has no such step.
const FoundStep* step_named(const TraceFinding& rank, const std::string& name) {
  const auto found = std::find_if(rank.steps.begin(), rank.steps.end(),
                                  [&](const FoundStep& step) { return step.name == name; });
  return found == rank.steps.end() ? nullptr : &*found;
}

void check_alike(const FoundStep& mine, const FoundStep& theirs, const std::string& file) {
  if (mine.all_reduces.size() != theirs.all_reduces.size())
    throw InputError(
        fmt::format("{}: {} has {} all-reduces of gradients, and {} in the first "
                    "trace: are they of one job?",
                    file, theirs.name, theirs.all_reduces.size(), mine.all_reduces.size()));
  for (std::size_t b = 0; b < mine.all_reduces.size(); ++b) {
    const std::int64_t here = theirs.all_reduces[b].elements, there = mine.all_reduces[b].elements;
    if (here >= 0 && there >= 0 && here != there)
      throw InputError(
          fmt::format("{}: {}: all-reduce {} has {} elements, and {} in the first "
                      "trace: are they of one job?",
                      file, theirs.name, b, here, there));
  }
}

/// [bucket] its times, one of each step that all traces have.
std::vector<std::vector<Duration>> times_of(const TraceFinding& finding,
                                            const std::vector<TraceFinding>& others,
                                            const std::vector<std::string>& other_files) {
  std::vector<std::vector<Duration>> times(finding.steps.front().all_reduces.size());
  for (const FoundStep& step : finding.steps) {
    std::vector<const FoundStep*> ranks{&step};
    for (std::size_t i = 0; i < others.size(); ++i) {
      const FoundStep* theirs = step_named(others[i], step.name);
      if (theirs == nullptr) break;
      check_alike(step, *theirs, other_files[i]);
      ranks.push_back(theirs);
    }
    if (ranks.size() != others.size() + 1) continue;
    std::vector<Duration> shortest = times_taken(step.all_reduces);
    for (const FoundStep* rank : ranks) {
      const std::vector<Duration> theirs = times_taken(rank->all_reduces);
      for (std::size_t b = 0; b < times.size(); ++b) shortest[b] = std::min(shortest[b], theirs[b]);
    }
    for (std::size_t b = 0; b < times.size(); ++b) times[b].push_back(shortest[b]);
  }
  return times;
}

/// [step] of these buckets: they follow each other, so it is their sum that a step feels.
std::vector<Duration> means_by_step(const std::vector<std::vector<Duration>>& times,
                                    const std::vector<std::size_t>& buckets) {
  std::vector<Duration> means(times.front().size());
  for (std::size_t step = 0; step < means.size(); ++step) {
    for (const std::size_t bucket : buckets) means[step] += times[bucket][step];
    means[step] /= static_cast<std::int64_t>(buckets.size());
  }
  return means;
}

/// A point for each group of sizes that are all but alike: between two of those a difference in
/// time is the ranks' arrival, not the link's. The size of a point is the mean of its buckets'.
AllReduceTable pooled(const std::map<Bytes, std::vector<std::size_t>>& by_size,
                      const std::vector<std::vector<Duration>>& times) {
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

void refuse_alone(const TraceFinding& finding, const std::string& file) {
  if (finding.alone())
    throw InputError(
        fmt::format("{}: a log of one rank: nothing crossed a link; leave --link-profile out, and "
                    "take the link "
                    "from a trace of several ranks, from nccl-tests, or by its name",
                    file));
}

}  // namespace

Link link_of(TraceFinding& finding, const FoundGradients& gradients, const std::string& file,
             const std::vector<TraceFinding>& others, const std::vector<std::string>& other_files) {
  refuse_alone(finding, file);
  for (std::size_t i = 0; i < others.size(); ++i) refuse_alone(others[i], other_files[i]);
  const std::vector<std::vector<Duration>> times = times_of(finding, others, other_files);
  if (times.empty() || times.front().empty())
    throw InputError(
        fmt::format("{}: no whole step of it is in the traces of the other ranks", file));
  std::map<Bytes, std::vector<std::size_t>> by_size;  // buckets
  for (std::size_t b = 0; b < times.size(); ++b) {
    const std::int64_t bytes = b < gradients.buckets.size() ? bytes_of(gradients.buckets[b]) : -1;
    if (bytes <= 0)
      throw InputError(
          fmt::format("{}: the trace does not say how large its all-reduces are: profile with "
                      "record_shapes=True, or name the network with --model",
                      file));
    by_size[Bytes{bytes}].push_back(b);
  }
  Link link;
  link.all_reduce = pooled(by_size, times);
  constexpr int most_ranks = 1'000'000;  // of a link profile
  if (finding.group_ranks > 0 && finding.group_ranks <= most_ranks)
    link.table_ranks = finding.group_ranks;
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
