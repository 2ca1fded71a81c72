#include "tools/import/trace_ranks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

TimesTaken times_taken(const std::vector<FoundCollective>& all_reduces) {
  TimesTaken times;
  Duration ended{};
  for (const FoundCollective& each : all_reduces) {
    const Duration own = each.end - std::max(each.start, ended);
    times.push_back(own > Duration::zero() ? std::optional(own) : std::nullopt);
    ended = std::max(ended, each.end);
  }
  return times;
}

/// The step of that name of another rank; null: it has no such step.
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

void refuse_alone(const TraceFinding& finding, const std::string& file) {
  if (finding.alone())
    throw InputError(
        fmt::format("{}: a log of one rank: nothing crossed a link; leave --link-profile out, and "
                    "take the link "
                    "from a trace of several ranks, from nccl-tests, or by its name",
                    file));
}

/// [rank] its all-reduces in this step of the first trace; empty: not all traces have the step.
std::vector<TimesTaken> times_in(const FoundStep& step, const RankTraces& traces) {
  std::vector<TimesTaken> times{times_taken(step.all_reduces)};
  for (std::size_t rank = 1; rank < traces.ranks(); ++rank) {
    const FoundStep* theirs = step_named(traces.finding(rank), step.name);
    if (theirs == nullptr) return {};
    check_alike(step, *theirs, traces.file(rank));
    times.push_back(times_taken(theirs->all_reduces));
  }
  return times;
}

}  // namespace

std::vector<std::vector<TimesTaken>> all_reduce_times(const RankTraces& traces) {
  for (std::size_t rank = 0; rank < traces.ranks(); ++rank)
    refuse_alone(traces.finding(rank), traces.file(rank));
  std::vector<std::vector<TimesTaken>> times;
  for (const FoundStep& step : traces.first.steps)
    if (auto of_step = times_in(step, traces); !of_step.empty())
      times.push_back(std::move(of_step));
  if (times.empty())
    throw InputError(fmt::format("{}: no whole step of it is in the traces of the other ranks",
                                 traces.first_file));
  return times;
}

}  // namespace ddpsim
