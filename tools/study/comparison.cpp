#include "tools/study/comparison.hpp"

#include <algorithm>

#include "sim/predict/predict.hpp"

namespace ddpsim {

Comparison::Comparison(Scenario read, bool laws_only)
    : scenario(std::move(read)),
      priced(price_calibrated(scenario, laws_only)),
      knowledge(knowledge_of(scenario, priced)) {
  none = step(Strategy::none);
  naive = step(Strategy::naive);
  for (const Strategy strategy : scenario.compare)
    compared.push_back(strategy == Strategy::none    ? none
                       : strategy == Strategy::naive ? naive
                                                     : step(strategy));
  for (const Step& each : compared) {
    alone.push_back(shares_update(each.training.strategy)
                        ? std::optional(predict(priced.model, each.training.compared_with()))
                        : std::nullopt);
    averaged.push_back(averaged_step(priced.model, each));
    memories.push_back(
        step_memory(scenario.workload, scenario.optimizer, each.training, each.job()));
  }
  reference = scaling_reference(scenario, priced.model, scenario.compare, priced.fit);
}

std::vector<Result> Comparison::results() const {
  std::vector<Result> results;
  for (std::size_t s = 0; s < compared.size(); ++s)
    results.push_back({&compared[s], &without_communication(compared[s]), &naive.metrics,
                       reference.one_rank[s],
                       reference.one_node.empty() ? Duration::zero() : reference.one_node[s],
                       averaged[s] ? averaged[s]->mean : Duration::zero(), &memories[s]});
  return results;
}

const StepMetrics& Comparison::without_communication(const Step& of) const {
  for (std::size_t s = 0; s < compared.size(); ++s)
    if (compared[s].training.strategy == of.training.strategy && alone[s]) return alone[s]->metrics;
  return none.metrics;
}

std::vector<NamedStep> Comparison::named() const {
  std::vector<NamedStep> named;
  for (const Step& each : compared) named.push_back({strategy_label(each.training), &each});
  return named;
}

Step Comparison::step(Strategy strategy) const {
  Training training = scenario.training;
  training.strategy = strategy;
  return predict(priced.model, training);
}

}  // namespace ddpsim
