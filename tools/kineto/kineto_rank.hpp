#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/index.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"
#include "tools/kineto/kineto_events.hpp"
#include "tools/kineto/kineto_names.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// Where a rank's events stand in a trace.
struct TracedRank {
  int host = 0, device = 0;  ///< process numbers
  int rank = 0;              ///< in the job
  int like = 0;              ///< index into Step::ranks of one that is as it
};

/// A launch on the host, and the number that joins it to what it launches; 0: there is none.
struct TracedLaunch {
  std::int64_t correlation = 0;
  TraceRow row;
  Instant at{};
};

/// One step of one rank: what the writers of its host and of its streams both ask.
class TracedStep {
 public:
  TracedStep(const Scenario& scenario, const Step& step, const TracedRank& rank);

  const program::Task& task(std::size_t index) const { return of.program.tasks[index]; }
  const TaskTimes& times(std::size_t index) const { return of.times[index]; }
  Operation operation(std::size_t index) const { return operation_of(of.job, task(index)); }
  const Work& work(std::size_t index) const { return of.job.works[task(index).work]; }
  const program::Origin& origin(std::size_t index) const { return of.origin_of(task(index)); }
  bool is_collective(std::size_t index) const { return of.communicates(task(index)); }
  /// Does a thread of the host do it, rather than a stream of the device?
  bool runs_on_host(std::size_t index) const {
    return synchronous || (collectives_on_hosts && is_collective(index));
  }
  CollectiveName collective(std::size_t index) const;
  std::string label(std::size_t index) const { return task_label(scenario, step, task(index)); }
  /// What the profiler says of a collective's message.
  TraceArguments message(const CollectiveName& named) const;
  const Parameter& parameter(std::int32_t index) const {
    return scenario.workload.parameters[at(index)];
  }

  const Scenario& scenario;
  const Step& step;
  const RankOfJob of;
  const TracedRank where;
  const bool synchronous;  ///< kernels run on the host's own thread
  const bool collectives_on_hosts;
};

/// Writes one step of one rank as PyTorch's profiler would have written it.
///
/// The host's process has the thread that calls forward and the optimizer, the autograd engine's,
/// and, where collectives run on hosts, theirs. The device's process has a row for each stream: 7
/// is PyTorch's default one, on 20 the collectives run. Where kernels run on the host thread there
/// is no such process. `correlation` is the last number that joined two events of the file.
void write_rank(TraceEvents& events, const TracedStep& step, std::int64_t& correlation);

/// The host's part; returns the launch of each task of the rank's program.
std::vector<TracedLaunch> write_host(TraceEvents& events, const TracedStep& step,
                                     std::int64_t& correlation);
/// What runs on the device's streams, and, where collectives run on hosts, on their threads.
void write_streams(TraceEvents& events, const TracedStep& step,
                   const std::vector<TracedLaunch>& launches, std::int64_t& correlation);
/// Counters of what collectives send: "link use", the rate at which the rank's port sends, and
/// "bytes in flight", the payload of the collectives under way.
void write_counters(TraceEvents& events, const TracedStep& step);
/// A counter "memory" of what the rank holds of its device's memory, by kind, in bytes.
void write_memory(TraceEvents& events, const TracedStep& step);

}  // namespace ddpsim
