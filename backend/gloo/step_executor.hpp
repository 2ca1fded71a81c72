#pragma once

#include "backend/backend.hpp"
#include "backend/comm_hooks/hook_data.hpp"
#include "backend/gloo/background_load.hpp"
#include "backend/gloo/handed_over.hpp"
#include "backend/gloo/kernels.hpp"
#include "backend/gloo/memory.hpp"
#include "backend/gloo/step_collectives.hpp"
#include "backend/gloo/user_hooks.hpp"
#include "backend/link/gloo/connection.hpp"

namespace ddpsim {

/// What a CPU rank carries out tasks with.
struct StepDevices {
  Connection& connection;
  Memory& memory;
  Kernels& kernels;
  UserHooks& user_hooks;
  HookData* hook_data = nullptr;  ///< null without a comm hook
};

/// Carries out one step on a CPU rank: the host thread walks the schedule in order and does what
/// each task says, or hands it to the communication threads.
class StepExecutor {
 public:
  /// `memory` is arranged for the schedule. All must outlive this object.
  StepExecutor(const StepDevices& devices, const Schedule& schedule, const RunOptions& options);

  /// See Backend::run. `background`: null, or what runs beside the step.
  RankRun run(BackgroundLoad* background);

 private:
  void walk();
  void execute(std::uint32_t index);
  bool is_left_out(const Task& task) const;
  void issue_collective(std::uint32_t index, TaskTimes& times);
  void wait(const Task& task, TaskTimes& times);
  void meet(TaskTimes& times);
  void hand_over_pause(std::uint32_t index, TaskTimes& times);
  void call_hook(const Task& task, TaskTimes& times) const;
  void run_user_hook(const Task& task, TaskTimes& times);
  void compute(const Task& task, TaskTimes& times);
  void execute_hook_step(std::uint32_t index, TaskTimes& times);
  void run_hook_step_aside(std::uint32_t index, std::uint32_t tag, TaskTimes& times);
  void compute_hook_step(const Task& task);
  template <typename Call>
  void slowed(Call call) const;
  template <typename Call>
  void timed(TaskTimes& times, Call call) const;
  bool is_others(const Task& task) const;
  void learn_starts(const BackgroundLoad* background, Instant computed_at);

  Instant now() const { return devices_.connection.now(); }

  StepDevices devices_;
  const Schedule& schedule_;
  const RunOptions& options_;
  bool without_inputs_;  ///< this rank
  HandedOver handed_over_;
  StepCollectives collectives_;
  RankRun run_;
};

}  // namespace ddpsim
