// How a step runs for real on CPUs.
//
// The host thread walks the schedule in order and does what each task says. Collectives go to the
// communication threads, which begin those of a communicator in order and run one at a time, or as
// many as the schedule says; a `wait` blocks the host until its all-reduce has ended. So hooks fire
// when their kernel has ended, and communication hides behind the kernels that follow, as far as
// two threads and the system's network stack can share the cores.
//
// Instants are taken around every task: about 50 ns each. An all-reduce "starts" when the last rank
// arrives, which no rank knows meanwhile; each notes when it arrived itself, and they tell each
// other after the step.

#include "backend/gloo/step_executor.hpp"

#include <thread>

#include "backend/cpu/busy.hpp"
#include "model/schedule/fingerprint.hpp"

namespace ddpsim {
StepExecutor::StepExecutor(const StepDevices& devices, const Schedule& schedule,
                           const RunOptions& options)
    : devices_(devices),
      schedule_(schedule),
      options_(options),
      without_inputs_(!schedule.has_inputs(devices.connection.rank())),
      handed_over_(devices.connection, schedule),
      collectives_(devices.connection.communicator(), devices.memory, devices.hook_data, schedule) {
  run_.times.resize(schedule.tasks.size());
  run_.fingerprint = fingerprint(schedule);
}

RankRun StepExecutor::run(BackgroundLoad* background) {
  if (without_inputs_) devices_.memory.clear_gradients();
  devices_.connection.start_together();
  Instant computed_at;
  devices_.connection.or_disconnect([&] {
    if (background != nullptr) background->begin();
    for (int round = 0; round < schedule_.rounds; ++round) walk();
    if (background != nullptr) background->computed();
    computed_at = now();
    handed_over_.finish();
  });
  run_.computed = computed_at - Instant{};
  run_.sent = collectives_.sent();
  if (devices_.hook_data != nullptr) run_.sent->overflows = devices_.hook_data->overflows();
  learn_starts(background, computed_at);
  return std::move(run_);
}

/// Each task once.
void StepExecutor::walk() {
  devices_.user_hooks.begin(schedule_);
  devices_.kernels.begin_step(schedule_);
  for (std::uint32_t i = 0; i < schedule_.tasks.size(); ++i) execute(i);
}

void StepExecutor::execute(std::uint32_t index) {
  const Task& task = schedule_.tasks[index];
  TaskTimes& times = run_.times[index];
  if (task.bucket != nobody && (is_collective(task.operation) || task.step != nobody))
    devices_.user_hooks.handed_over(schedule_.buckets[static_cast<std::size_t>(task.bucket)]);
  times.issued = times.enqueued = now();
  if (options_.pause > Duration::zero() && index == options_.pause_before) {
    std::this_thread::sleep_for(options_.pause);
    times.enqueued = now();
  }
  if (is_left_out(task)) {
    times.start = times.end = times.enqueued;
    return;
  }
  if (task.operation == Operation::wait) return wait(task, times);
  if (task.operation == Operation::meet) return meet(times);
  if (task.operation == Operation::pause) return hand_over_pause(index, times);
  if (task.step != nobody) return execute_hook_step(index, times);
  if (is_collective(task.operation)) return issue_collective(index, times);
  if (task.operation == Operation::hook) return call_hook(task, times);
  if (task.operation == Operation::gradient_hook || task.operation == Operation::module_hook)
    return run_user_hook(task, times);
  compute(task, times);
}

bool StepExecutor::is_others(const Task& task) const {
  return task.owner != nobody && task.owner != devices_.connection.rank();
}

bool StepExecutor::is_left_out(const Task& task) const {
  if (without_inputs_ && task.step == nobody && traits_of(task.operation).needs_inputs) return true;
  return task.operation == Operation::wait && is_others(task);
}

void StepExecutor::issue_collective(std::uint32_t index, TaskTimes& times) {
  handed_over_.submit(index, [this, index, &times](std::uint32_t tag) {
    collectives_.run(index, tag);
    times.end = now();
  });
  times.enqueued = now();
}

void StepExecutor::wait(const Task& task, TaskTimes& times) {
  handed_over_.wait_for_inputs(task);
  if (schedule_.work_of(task).message == Message::parameters) devices_.memory.end_average();
  times.issued = times.enqueued = times.start = times.end = now();
}

void StepExecutor::meet(TaskTimes& times) {
  devices_.connection.meet();
  times.issued = times.enqueued = times.start = times.end = now();
}

/// The communication thread sleeps in the place of a collective.
void StepExecutor::hand_over_pause(std::uint32_t index, TaskTimes& times) {
  const Duration length = schedule_.work_of(schedule_.tasks[index]).host;
  handed_over_.submit(index, [this, index, length, &times](std::uint32_t) {
    times.start = handed_over_.arrival(index);
    std::this_thread::sleep_for(length);
    times.end = now();
  });
  times.enqueued = now();
}

void StepExecutor::call_hook(const Task& task, TaskTimes& times) const {
  if (options_.hook) options_.hook(task.parameter, task.micro_batch);
  times.start = times.issued;
  times.enqueued = times.end = now();
}

void StepExecutor::run_user_hook(const Task& task, TaskTimes& times) {
  times.start = times.enqueued;
  slowed([&] { devices_.user_hooks.run(schedule_, task); });
  times.end = now();
}

void StepExecutor::compute(const Task& task, TaskTimes& times) {
  timed(times, [&] { slowed([&] { devices_.kernels.run(schedule_, task); }); });
  if (task.operation == Operation::backward) devices_.user_hooks.computed(task);
}

/// A task of a comm hook: on this thread before the hook's first collective, then on the one that
/// communicates.
void StepExecutor::execute_hook_step(std::uint32_t index, TaskTimes& times) {
  const Task& task = schedule_.tasks[index];
  if (task.stream == Stream::communication) {
    handed_over_.submit(index, [this, index, &times](std::uint32_t tag) {
      run_hook_step_aside(index, tag, times);
    });
    times.enqueued = now();
    return;
  }
  timed(times, [&] { slowed([&] { compute_hook_step(task); }); });
}

void StepExecutor::run_hook_step_aside(std::uint32_t index, std::uint32_t tag, TaskTimes& times) {
  const Task& task = schedule_.tasks[index];
  if (!is_collective(task.operation)) return timed(times, [&] { compute_hook_step(task); });
  times.start = handed_over_.arrival(index);
  collectives_.run(index, tag);
  times.end = now();
}

void StepExecutor::compute_hook_step(const Task& task) {
  const Bucket& bucket = schedule_.buckets[static_cast<std::size_t>(task.bucket)];
  const CommStep& step = bucket.steps[static_cast<std::size_t>(task.step)];
  switch (meaning_of(step.action).primitive) {
    case HookPrimitive::nothing:
      return;
    case HookPrimitive::update:
      if (!is_others(task)) devices_.kernels.update(bucket);
      return;
    case HookPrimitive::cast:
    case HookPrimitive::divide:
    case HookPrimitive::scale:
    case HookPrimitive::copy:
    case HookPrimitive::add:
    case HookPrimitive::subtract:
    case HookPrimitive::pad:
    case HookPrimitive::unpad:
    case HookPrimitive::pack:
    case HookPrimitive::unpack:
    case HookPrimitive::draw:
    case HookPrimitive::orthogonalize:
    case HookPrimitive::multiply:
    case HookPrimitive::observe:
    case HookPrimitive::quantize:
    case HookPrimitive::dequantize:
    case HookPrimitive::select:
    case HookPrimitive::spread:
    case HookPrimitive::touch:
    case HookPrimitive::plugin_before:
    case HookPrimitive::plugin_after:
    case HookPrimitive::all_reduce:
    case HookPrimitive::reduce_scatter:
    case HookPrimitive::all_gather:
    case HookPrimitive::broadcast:
      devices_.hook_data->run(bucket, task.bucket, step, devices_.memory.bucket(task.bucket));
  }
}

/// Makes `call`, which computes, and is busy until it has taken as long as this rank is told to
/// (RunOptions::compute).
template <typename Call>
void StepExecutor::slowed(Call call) const {
  if (options_.compute <= 1) return call();
  const Duration before = processor_time();
  call();
  be_busy(scaled(processor_time() - before, options_.compute - 1));
}

/// Makes `call`, which computes, from its start to its end, or (see RunOptions::by_processor) as
/// long as the processor was its own.
template <typename Call>
void StepExecutor::timed(TaskTimes& times, Call call) const {
  times.start = now();
  const Duration before = options_.by_processor ? processor_time() : Duration::zero();
  call();
  times.end = options_.by_processor ? times.start + (processor_time() - before) : now();
}

/// The ranks tell each other when they reached their collectives.
void StepExecutor::learn_starts(const BackgroundLoad* background, Instant computed_at) {
  const std::vector<std::uint32_t> collectives = handed_over_.collectives();
  std::vector<Instant> arrivals;
  for (const std::uint32_t index : collectives) arrivals.push_back(handed_over_.arrival(index));
  if (background != nullptr)
    for (const Instant arrival : background->arrivals()) arrivals.push_back(arrival);
  if (arrivals.empty()) return;
  const std::vector<Instant> last = devices_.connection.latest(std::move(arrivals));
  start_with_last_rank(collectives, last, run_.times);
  if (background != nullptr)
    background->report(std::span(last).subspan(collectives.size()), computed_at, run_);
}

}  // namespace ddpsim
