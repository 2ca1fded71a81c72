#include "sim/predict/step_sequence.hpp"

#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "model/parallel/policy/iteration.hpp"
#include "sim/predict/predict.hpp"

namespace ddpsim {

double ConsecutiveSteps::total_seconds() const {
  double seconds = 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    seconds += static_cast<double>(counts[kind]) * in_seconds(kinds[kind].metrics.step);
  return seconds;
}

double ConsecutiveSteps::working_seconds() const {
  double seconds = 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    seconds += static_cast<double>(counts[kind]) * in_seconds(kinds[kind].metrics.working());
  return seconds;
}

std::optional<AveragedStep> averaged_step(const StepModel& model, const Step& steady) {
  Training training = steady.training;
  if (training.iteration != 0) return std::nullopt;
  const std::optional<ModelAveraging> averages = model_averaging(training);
  if (!averages) return std::nullopt;
  training.iteration = averages->first;
  // Moves to an iteration beyond those in which DDP does things that it does only once.
  while (first_like(training, training.iteration) == training.iteration &&
         training.iteration <= 3 && averages->period < most_steps)
    training.iteration += averages->period;
  AveragedStep averaged;
  averaged.period = averages->period;
  averaged.averaging = predict(model, training).metrics.step;
  averaged.mean = (steady.metrics.step * (averages->period - 1) + averaged.averaging) /
                  std::int64_t{averages->period};
  return averaged;
}

ConsecutiveSteps consecutive_steps(const StepModel& model, const Training& training, int count) {
  if (count < 1 || count > most_steps)
    throw std::invalid_argument(
        fmt::format("steps: expected a whole number from 1 to {}, got {}", most_steps, count));
  ConsecutiveSteps steps;
  std::map<int, std::int32_t> kind_of;  // by the first iteration that is like it
  std::vector<std::optional<DdpStatistics>> statistics;
  for (int iteration = 1; iteration <= count; ++iteration) {
    const int like = first_like(training, iteration);
    const auto [found, fresh] =
        kind_of.emplace(like, static_cast<std::int32_t>(steps.kinds.size()));
    if (fresh) {
      Training one = training;
      one.iteration = like;
      const Step& made = steps.kinds.emplace_back(predict(model, one));
      steps.counts.push_back(0);
      statistics.push_back(ddp_statistics(made.rank()));
    }
    const auto kind = static_cast<std::size_t>(found->second);
    steps.sequence.push_back(found->second);
    ++steps.counts[kind];
    if (statistics[kind] && DdpAverages::samples(iteration)) steps.logged.add(*statistics[kind]);
  }
  return steps;
}

}  // namespace ddpsim
