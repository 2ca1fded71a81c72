#include "backend/measure/measure_step.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "model/program/fingerprint.hpp"

namespace ddpsim {
namespace {

/// Throws DeviceError on every rank unless all of them were given what has this fingerprint, and
/// executed it.
void check_executed(Backend& backend, std::uint64_t wanted, std::uint64_t executed) {
  const std::array mine{wanted, executed};
  const auto all = backend.gather(std::as_bytes(std::span(mine)));
  std::array<std::uint64_t, 2> first{};
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::array<std::uint64_t, 2> theirs{};
    if (all[rank].size() == sizeof(theirs))
      std::memcpy(theirs.data(), all[rank].data(), sizeof(theirs));
    if (rank == 0) first = theirs;
    for (const std::uint64_t each : theirs)
      if (each != first.front())
        throw DeviceError(fmt::format(
            "the ranks disagree on what they execute: the job of rank 0 is {}, rank {} has {}",
            program::fingerprint_text(first.front()), rank, program::fingerprint_text(each)));
  }
}

/// All ranks' times, as one timeline.
JobTimeline timeline_of(Backend& backend, const program::Job& job,
                        const std::vector<TaskTimes>& mine) {
  JobTimeline timeline;
  timeline.measured = true;
  for (const auto& bytes : backend.gather(std::as_bytes(std::span(mine)))) {
    const auto rank = static_cast<std::uint32_t>(timeline.classes.size());
    const std::size_t tasks = job.programs.at(job.program_of.at(rank)).tasks.size();
    if (bytes.size() != tasks * sizeof(TaskTimes))
      throw DeviceError("the ranks ran different jobs");
    auto& times = timeline.classes.emplace_back(tasks);
    timeline.class_of.push_back(rank);
    if (!bytes.empty()) std::memcpy(times.data(), bytes.data(), bytes.size());
    for (const TaskTimes& at : times) timeline.end = std::max(timeline.end, at.end);
  }
  return timeline;
}

}  // namespace

JobTimeline measure_step(Backend& backend, const program::Job& job, const RunOptions& options,
                         std::optional<Sent>* sent) {
  const RankRun run = backend.run(job, options);
  if (sent != nullptr) *sent = run.sent;
  check_executed(backend, program::fingerprint(job), run.fingerprint);
  return timeline_of(backend, job, run.times);
}

bool any_rank(Backend& backend, bool mine) {
  double value = mine ? 1 : 0;
  backend.sum({&value, 1});
  return value > 0;
}

double largest_of_ranks(Backend& backend, double mine) {
  std::vector<double> all(static_cast<std::size_t>(backend.ranks()), 0);
  all[static_cast<std::size_t>(backend.rank())] = mine;
  backend.sum(all);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace ddpsim
