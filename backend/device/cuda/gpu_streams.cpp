// How a program runs for real on a GPU.
//
// A task goes to its stream as soon as the host comes to it; for each task of another stream that
// it waits for, its stream first waits for that one's event. Nothing else orders the streams, but
// that a round begins on all of them once the one before has ended on all. Every task's end is
// recorded in an event; a kernel began when its stream was free and what it waits for had ended, so
// only what communicates, which may wait for peers, has an event for the start.

#include "backend/device/cuda/gpu_streams.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "backend/device/cuda/gpu_times.hpp"
#include "backend/device/cuda/task_names.hpp"
#include "backend/execute/beside.hpp"

namespace ddpsim {

using program::Job;

namespace {

/// The host is at most five times so many entries ahead. A stream takes about a thousand before a
/// call blocks.
constexpr int entries_per_mark = 200;

bool computes(const Job& job, const program::Program& program) {
  return std::ranges::any_of(program.tasks, [&](const program::Task& task) {
    return std::holds_alternative<program::Compute>(job.deed_of(task).action);
  });
}

}  // namespace

/// One communicator, on the device, is one queue (rule R17).
std::string GpuStreams::refusal(const Job& job) const {
  for (const program::Communicator& communicator : job.communicators)
    if (communicator.at_once > 1)
      return "NCCL runs one collective of a communicator at a time: take "
             "cluster.collectives_at_once out, or run on gloo";
  for (const program::Stream& stream : job.streams)
    if (stream.lanes > 1)
      return fmt::format("a GPU does one task of a stream at a time, and {} would do {}",
                         stream.name, stream.lanes);
  const auto lacks_inputs = [&](const program::Program& program) {
    return !computes(job, program);
  };
  if (std::ranges::any_of(job.programs, lacks_inputs) &&
      !std::ranges::all_of(job.programs, lacks_inputs))
    return "ranks without inputs are run by the gloo backend only";
  return execute::refusal_of_beside(job);
}

void GpuStreams::begin(const execute::Running& running) {
  running_.emplace(running);
  const program::Program& program = running.program;
  events_ = {static_cast<int>(running.job.streams.size()),
             static_cast<std::uint32_t>(program.tasks.size())};
  ahead_.assign(running.job.streams.size(), {});
  handed_over_.assign(program.tasks.size(), false);
  names_.clear();
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    ahead_[program.tasks[t].stream].is_used = true;
    names_.push_back(task_name(running.job, program.tasks[t], workload_));
  }
  if (running.job.beside) ahead_[running.job.beside->tasks.front().stream].is_used = true;
  std::vector<GpuStream> used;
  for (GpuStream stream = 1; stream < events_.streams; ++stream)
    if (ahead_[at(stream)].is_used) used.push_back(stream);
  gpu_.make_stream(first_stream);
  for (const GpuStream stream : used) gpu_.make_stream(stream);
  clock_.use(std::move(used));
  beside_.begin(running, events_);
}

void GpuStreams::start() {
  if (profile_) gpu_.note_clock();
  beside_.feed(false);
  gpu_.push_range("step");
}

void GpuStreams::begin_round(int round) {
  if (round == 0) return;
  for (GpuStream one = 0; one < events_.streams; ++one)
    if (ahead_[at(one)].is_used) gpu_.record(GpuEvents::round(one), one);
  for (GpuStream one = 0; one < events_.streams; ++one)
    for (GpuStream other = 0; other < events_.streams; ++other)
      if (one != other && ahead_[at(one)].is_used && ahead_[at(other)].is_used)
        gpu_.wait(one, GpuEvents::round(other));
}

void GpuStreams::enter(std::uint32_t task) {
  keep_near(task);
  gpu_.push_range(names_[task]);
}

void GpuStreams::leave() {
  gpu_.pop_range();
}

/// Keeps the host from enqueueing more than a stream takes before a call blocks (about a thousand):
/// a blocked call would count as the cost of a launch, and nobody would look for errors. While it
/// waits it feeds what is beside, which would make kernels late at any other time.
void GpuStreams::keep_near(std::uint32_t index) {
  const program::Task& task = running_->program.tasks[index];
  if (task.stream == 0) return;
  Ahead& ahead = ahead_[task.stream];
  ahead.entries += running_->job.works[task.work].launches + 3;  // and a wait, two records
  if (ahead.entries < entries_per_mark) return;
  ahead.entries = 0;
  const int mark = events_.mark(task.stream, ahead.marks);
  if (ahead.marks >= GpuEvents::marks)
    waiter_.until([&] { return gpu_.reached(mark); }, [&] { beside_.feed(false); });
  gpu_.record(mark, task.stream);
  ++ahead.marks;
}

void GpuStreams::submit(std::uint32_t index, std::function<void()> call) {
  const GpuStream stream = running_->program.tasks[index].stream;
  for (const std::uint32_t earlier : running_->program.waits_for(index))
    if (handed_over_[earlier] && running_->program.tasks[earlier].stream != stream)
      gpu_.wait(stream, events_.end(earlier));
  if (running_->communicates(index)) gpu_.record(events_.start(index), stream);
  call();
  gpu_.record(events_.end(index), stream);
  handed_over_[index] = true;
  ahead_[at(stream)].last = index;
}

void GpuStreams::wait(std::uint32_t task) {
  if (handed_over_[task]) waiter_.await(events_.end(task));
}

/// Has the GPU done all that is not beside its kernels?
bool GpuStreams::has_computed() {
  for (std::size_t stream = 0; stream < ahead_.size(); ++stream)
    if (const auto& last = ahead_[stream].last;
        last && !running_->job.streams[stream].beside && !gpu_.reached(events_.end(*last)))
      return false;
  return true;
}

Instant GpuStreams::finish() {
  waiter_.until([&] { return beside_.stopped(); }, [&] { beside_.feed(has_computed()); });
  for (const Ahead& ahead : ahead_)
    if (ahead.last) waiter_.await(events_.end(*ahead.last));
  if (beside_.issued() > 0) waiter_.await(events_.beside_end(beside_.issued() - 1));
  waiter_.check();
  gpu_.pop_range();
  read_events(*running_, handed_over_, events_, clock_);
  if (profile_) read_profiler(*running_, clock_, gpu_.noted_clock());
  std::optional<Instant> computed;
  for (std::size_t stream = 0; stream < ahead_.size(); ++stream)
    if (const auto& last = ahead_[stream].last; last && !running_->job.streams[stream].beside)
      computed = std::max(computed.value_or(Instant{}), clock_.instant_of(events_.end(*last)));
  return computed.value_or(clock_.now());
}

std::vector<Instant> GpuStreams::arrivals_beside() const {
  return beside_.issued() > 0 ? std::vector{beside_.begun()} : std::vector<Instant>{};
}

void GpuStreams::report_beside(std::span<const Instant> last, RankRun& run) const {
  beside_.report(last.front(), run);
}

}  // namespace ddpsim
