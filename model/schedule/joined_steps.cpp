#include "model/schedule/joined_steps.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddpsim {
namespace {

class Joiner {
 public:
  Joiner(std::span<const Schedule* const> steps, const std::function<bool(int)>& samples)
      : samples_(samples) {
    const Schedule& first = *steps.front();
    Schedule& all = joined_.schedule;
    all.hooks = first.hooks;
    all.ranks = first.ranks;
    all.synchronous = first.synchronous;
    all.collectives_at_once = first.collectives_at_once;
    all.ranks_without_inputs = first.ranks_without_inputs;
    all.hook_state = first.hook_state;
    all.hook_seed = first.hook_seed;
    std::size_t tasks = 0, after = 0, buckets = 0;
    for (const Schedule* step : steps) {
      tasks += step->tasks.size() + 1;
      after += step->after.size() + 2;
      buckets += step->buckets.size();
    }
    all.tasks.reserve(tasks);
    all.after.reserve(after);
    all.buckets.reserve(buckets);
    joined_.begins.reserve(steps.size());
    for (const Schedule* step : steps) append(*step);
  }

  JoinedSteps result() { return std::move(joined_); }

 private:
  void append(const Schedule& step) {
    Schedule& all = joined_.schedule;
    const std::uint32_t begin = end();
    const auto buckets = static_cast<std::int32_t>(all.buckets.size());
    joined_.begins.push_back(begin);
    all.buckets.insert(all.buckets.end(), step.buckets.begin(), step.buckets.end());
    all.comm_hook_memory = std::max(all.comm_hook_memory, step.comm_hook_memory);
    auto logged = step.logged.begin();
    std::vector<std::uint32_t> numbers;  // [work of the step] its number in all
    for (const Work& work : step.works) numbers.push_back(number_of(work));
    if (all.passes.forward.empty()) take_passes(step, numbers);
    places_.resize(step.tasks.size());
    for (std::uint32_t i = 0; i < step.tasks.size(); ++i) {
      if (logged != step.logged.end() && logged->begin == i) read_timers(step.tasks[i].micro_batch);
      places_[i] = end();
      Task task = step.tasks[i];
      task.work = numbers[task.work];
      task.after_begin = static_cast<std::uint32_t>(all.after.size());
      for (const std::uint32_t earlier : step.waits_for(step.tasks[i]))
        all.after.push_back(places_[earlier]);
      // Adds a wait for the step before: when the step was written by itself, no kernel had been
      // enqueued that this task could wait for.
      const bool ordered = task.stream == Stream::communication || task.host_waits;
      if (ordered && last_kernel_ != none && last_kernel_ < begin)
        all.after.push_back(last_kernel_);
      task.after_count = static_cast<std::uint32_t>(all.after.size()) - task.after_begin;
      if (task.bucket != nobody) task.bucket += buckets;
      if (task.gradient != nobody)
        task.gradient = static_cast<std::int32_t>(places_[static_cast<std::size_t>(task.gradient)]);
      if (task.stream == Stream::compute) last_kernel_ = places_[i];
      all.tasks.push_back(task);
      if (logged == step.logged.end() || logged->end != i + 1) continue;
      mark_ = samples_(++iteration_) ? last_kernel_ : none;
      ++logged;
    }
  }

  /// DDP's logger reads its timers: the host waits for the last mark of the iteration before, if
  /// that one was sampled.
  void read_timers(std::int16_t micro_batch) {
    if (mark_ == none) return;
    Schedule& all = joined_.schedule;
    joined_.timer_reads.push_back({joined_.begins.size() - 1, end()});
    Task& wait = all.tasks.emplace_back();
    Work work;
    work.operation = wait.operation = Operation::wait;
    wait.work = number_of(work);
    wait.stream = Stream::host;
    wait.host_waits = true;
    wait.micro_batch = micro_batch;
    wait.after_begin = static_cast<std::uint32_t>(all.after.size());
    wait.after_count = 1;
    all.after.push_back(mark_);
  }

  std::uint32_t number_of(const Work& work) {
    const std::uint32_t number = table_.add(work);
    if (number == joined_.schedule.works.size()) joined_.schedule.works.push_back(work);
    return number;
  }

  void take_passes(const Schedule& step, const std::vector<std::uint32_t>& numbers) {
    Passes& passes = joined_.schedule.passes;
    passes = step.passes;
    for (auto* pass : {&passes.forward, &passes.backward, &passes.optimizer})
      for (std::uint32_t& work : *pass) work = numbers[work];
  }

  std::uint32_t end() const { return static_cast<std::uint32_t>(joined_.schedule.tasks.size()); }

  static constexpr std::uint32_t none = ~std::uint32_t{0};

  const std::function<bool(int)>& samples_;
  JoinedSteps joined_;
  WorkTable table_;                    ///< numbered as Schedule::works
  std::vector<std::uint32_t> places_;  ///< [task of the step being appended] where it came to lie
  std::uint32_t last_kernel_ = none;   ///< the task enqueued last on the compute stream
  int iteration_ = 0;                  ///< ended so far, as DDP's logger counts
  std::uint32_t mark_ = none;          ///< of an iteration whose timers are still to be read
};

}  // namespace

JoinedSteps join_steps(std::span<const Schedule* const> steps,
                       const std::function<bool(int)>& samples) {
  if (steps.empty()) throw std::invalid_argument("there are no steps to join");
  return Joiner(steps, samples).result();
}

}  // namespace ddpsim
