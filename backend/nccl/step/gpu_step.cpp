// How a step runs for real on a GPU.
//
// The host thread walks the schedule in order. A task goes to its stream; for each task of another
// stream it waits for, its stream first waits for that one's event. Nothing else orders the
// streams. Every task's end is recorded in an event; a kernel began when its stream was free and
// what it waits for had ended, so only collectives, which may wait for peers, have an event for the
// start.

#include "backend/nccl/step/gpu_step.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/nccl/step/gpu_step_times.hpp"
#include "backend/nccl/step/step_events.hpp"
#include "backend/nccl/step/task_names.hpp"
#include "model/schedule/fingerprint.hpp"

namespace ddpsim {
namespace {

/// The host is at most five times so many entries ahead. A stream takes about a thousand before a
/// call blocks, and most tasks give their streams fewer entries than are counted here.
constexpr int entries_per_mark = 200;

}  // namespace

GpuStep::GpuStep(const GpuDevices& devices, const Schedule& schedule, const RunOptions& options,
                 bool profile)
    : devices_(devices),
      schedule_(schedule),
      options_(options),
      profile_(profile),
      tasks_(static_cast<std::uint32_t>(schedule.tasks.size())),
      background_(devices.gpu, devices.collectives, devices.communicator, devices.clock,
                  schedule.background.size, tasks_) {
  devices_.memory.arrange(schedule);
  devices_.hook_data.arrange(schedule);
  for (const Task& task : schedule.tasks)
    if (is_collective(task.operation))
      devices_.collectives.reserve(task.operation, schedule.work_of(task).payload);
  for (const Task& task : schedule.tasks)
    ranges_.push_back(name_of(task, schedule, devices_.memory.workload()));
  run_.times.resize(schedule.tasks.size());
  run_.fingerprint = fingerprint(schedule);
}

RankRun GpuStep::run() {
  devices_.clock.start_together();
  if (profile_) devices_.gpu.note_clock();
  background_.feed(false);
  devices_.gpu.push_range("step");
  for (int round = 0; round < schedule_.rounds; ++round) {
    if (round + 1 == schedule_.rounds) devices_.gpu.record(last_round_event, Stream::compute);
    walk();
  }
  await_all();
  devices_.gpu.pop_range();
  const bool communicates = std::ranges::any_of(
      schedule_.tasks, [](const Task& task) { return is_collective(task.operation); });
  if (!communicates) devices_.hook_data.forget();
  read_events(schedule_, devices_.clock, run_.times);
  if (profile_ && communicates)
    read_profiler(schedule_, devices_.clock, devices_.gpu.noted_clock(), run_.times);
  const Instant computed_at = devices_.clock.instant_of(computed_event(tasks_));
  run_.computed = computed_at - Instant{};
  learn_starts(computed_at);
  return std::move(run_);
}

/// Each task once.
void GpuStep::walk() {
  for (std::uint32_t i = 0; i < tasks_; ++i) {
    keep_near(schedule_.tasks[i]);
    execute(i, run_.times[i]);
  }
}

/// Keeps the host from enqueueing more than a stream takes before a call blocks (about a thousand):
/// a blocked call would count as the cost of a launch, and nobody would look for errors. While it
/// waits it feeds the background, which would make kernels late at any other time.
void GpuStep::keep_near(const Task& task) {
  if (task.stream == Stream::host) return;
  ahead_ += schedule_.work_of(task).launches + 3;  // and a wait, two records
  if (ahead_ < entries_per_mark) return;
  ahead_ = 0;
  const int mark = first_mark + next_mark_ % marks;
  if (next_mark_ >= marks)
    devices_.waiter.until([&] { return devices_.gpu.reached(mark); },
                          [&] { background_.feed(false); });
  devices_.gpu.record(mark, Stream::compute);
  ++next_mark_;
}

void GpuStep::execute(std::uint32_t index, TaskTimes& times) {
  const Task& task = schedule_.tasks[index];
  if (task.host_waits)
    for (const std::uint32_t earlier : schedule_.waits_for(task))
      if (enqueues(schedule_.tasks[earlier])) devices_.waiter.await(end_event(earlier));
  times.issued = devices_.clock.now();
  if (enqueues(task)) {
    devices_.gpu.push_range(ranges_[index]);
    enqueue_in_order(index);
    devices_.gpu.pop_range();
  } else if (task.operation == Operation::hook) {
    devices_.gpu.push_range(ranges_[index]);
    if (options_.hook) options_.hook(task.parameter, task.micro_batch);
    devices_.gpu.pop_range();
  }
  times.enqueued = devices_.clock.now();
  times.start = times.end = times.enqueued;
}

/// The task's work, behind what it waits for, with its events.
void GpuStep::enqueue_in_order(std::uint32_t index) {
  const Task& task = schedule_.tasks[index];
  for (const std::uint32_t earlier : schedule_.waits_for(task))
    stream_waits_for(earlier, task.stream);
  if (is_collective(task.operation)) devices_.gpu.record(start_event(index), task.stream);
  enqueue(task);
  devices_.gpu.record(end_event(index), task.stream);
}

void GpuStep::enqueue(const Task& task) {
  if (task.step != nobody) return devices_.hook_data.run(schedule_, task);
  if (is_collective(task.operation)) return send(task);
  devices_.compute.run(schedule_, task);
}

/// Sends a bucket, the network's buffers, or a note of DDP's to other ranks, whose values nobody
/// looks at.
void GpuStep::send(const Task& task) {
  const bool note = is_note(schedule_, task);
  const Bytes size = schedule_.work_of(task).payload;
  const auto all_reduce = [&](void* values, DType type) {
    devices_.collectives.all_reduce(values, size.count / size_of(type).count, type);
  };
  switch (collective_of(task.operation)) {
    case CollectiveOperation::broadcast:
      return devices_.collectives.broadcast(
          note ? devices_.collectives.next_values(size) : devices_.memory.buffers(), size);
    case CollectiveOperation::all_reduce:
      if (note) return all_reduce(devices_.collectives.next_values(size), DType::fp32);
      return all_reduce(devices_.memory.bucket(task.bucket),
                        devices_.memory.type_of(schedule_.buckets[at(task.bucket)]));
    case CollectiveOperation::all_gather:
    case CollectiveOperation::reduce_scatter:  // check_gpu_schedule has refused them
      throw std::invalid_argument(
          fmt::format("the nccl backend has no {} outside of comm hooks", name_of(task.operation)));
  }
}

void GpuStep::stream_waits_for(std::uint32_t earlier, Stream stream) {
  const Task& before = schedule_.tasks[earlier];
  if (enqueues(before) && before.stream != stream) devices_.gpu.wait(stream, end_event(earlier));
}

/// Until the GPU has done everything; meanwhile the background goes on as long as it shall.
void GpuStep::await_all() {
  const int computed = computed_event(tasks_);
  devices_.gpu.record(computed, Stream::compute);
  devices_.waiter.until([&] { return background_.stopped(); },
                        [&] { background_.feed(devices_.gpu.reached(computed)); });
  devices_.waiter.await(computed);
  if (background_.issued() > 0) devices_.waiter.await(background_.last_event());
  for (const Stream stream : {Stream::communication, Stream::aside}) await_last(stream);
}

void GpuStep::await_last(Stream stream) {
  for (std::uint32_t i = tasks_; i-- > 0;)
    if (schedule_.tasks[i].stream == stream && enqueues(schedule_.tasks[i]))
      return devices_.waiter.await(end_event(i));
}

/// The ranks tell each other when they reached their collectives.
void GpuStep::learn_starts(Instant computed_at) {
  std::vector<std::uint32_t> collectives;
  std::vector<Instant> arrivals;
  for (std::uint32_t i = 0; i < tasks_; ++i)
    if (is_collective(schedule_.tasks[i].operation)) {
      collectives.push_back(i);
      arrivals.push_back(run_.times[i].start);
    }
  if (background_.issued() > 0) arrivals.push_back(background_.begun());
  if (arrivals.empty()) return;
  const std::vector<Instant> last = devices_.clock.latest(std::move(arrivals));
  start_with_last_rank(collectives, last, run_.times);
  if (background_.issued() > 0) background_.report(last.back(), computed_at, run_);
}

}  // namespace ddpsim
