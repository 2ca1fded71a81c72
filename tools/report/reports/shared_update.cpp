#include "tools/report/reports/shared_update.hpp"

#include <fmt/format.h>

#include "model/parallel/policy/iteration.hpp"

namespace ddpsim {

std::optional<Duration> saved_by_sharing(const Step& step, const StepMetrics& none) {
  if (!is_zero_step(step.training.comm_hook.kind)) return std::nullopt;
  double share = 0;
  const program::Job& job = step.job();
  for (const program::Task& task : step.rank().program.tasks) {
    const Work& work = job.works[task.work];
    if (work.operation != Operation::optimizer) continue;
    if (job.deed_of(task).origin.label == 0) return std::nullopt;  // a strategy without comm hooks
    share += work.optimizer_share;
  }
  const Duration saved = scaled(none.optimizer, 1 - share);
  // All of it where one rank owns all, but for the rounding of shares.
  if (saved <= scaled(none.optimizer, 1e-9)) return std::nullopt;
  return saved;
}

std::string sharing_text(const Step& step, const StepMetrics& none, Duration saved) {
  return fmt::format(
      "{}, which takes {:.3f} ms less than all of them in the step without communication; exposed, "
      "overlap and comm share count that against communication, which by itself costs {:.3f} ms",
      before_zero_steps(step.training) ? "no rank updates parameters yet (training.iteration)"
                                       : "each rank updates only its share of the parameters",
      in_ms(saved), in_ms(exposed(step.metrics, none) + saved));
}

std::vector<std::string> sharing_notes(const Comparison& run) {
  std::vector<std::string> notes;
  for (const Step& step : run.compared)
    if (const auto saved = saved_by_sharing(step, run.none.metrics))
      notes.push_back(fmt::format("{}: {}: {}", run.scenario.name, strategy_label(step.training),
                                  sharing_text(step, run.none.metrics, *saved)));
  return notes;
}

}  // namespace ddpsim
