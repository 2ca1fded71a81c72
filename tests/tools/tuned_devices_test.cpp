#include <catch2/catch.hpp>

#include "scenarios/reader/explain/catalogue_list.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "tests/sim/predict/random_trainings.hpp"

namespace ddpsim {
namespace {

using fixtures::Dice;

/// Ranks of one node of such a device, the last of which computes up to three times as long.
StepModel model_on(const Device& device, Dice& dice) {
  Cluster cluster = fixtures::random_cluster(dice, false);
  cluster.device = device;
  cluster.interference.reset();  // by the law
  cluster.ranks_per_node = dice.between(2, 8);
  cluster.intra_node.kind = dice.one_in(2) ? LinkKind::nvlink : LinkKind::pcie;
  cluster.intra_node.latency = usual_latency(cluster.intra_node.kind);
  Workload workload = fixtures::any_workload(dice);
  for (Parameter& parameter : workload.parameters) parameter.unused = false;
  for (Layer& layer : workload.layers)
    for (auto* pass : {&layer.forward, &layer.backward})
      for (Kernel& kernel : *pass) kernel.type = DType::fp32;  // every device multiplies it
  StepModel model(workload, cluster, Optimizer::sgd);
  if (!dice.one_in(3)) model.costs.slowest_rank = 1 + 0.01 * dice.between(1, 200);
  return model;
}

std::vector<int> random_ends(Dice& dice, int count) {
  std::vector<int> ends;
  for (int end = 1; end < count; ++end)
    if (dice.one_in(3)) ends.push_back(end);
  ends.push_back(count);
  return ends;
}

}  // namespace

TEST_CASE("a tuner's steps are as long as predicted ones, on every device of the catalogue",
          "[tools][tune]") {
  int compared = 0, later = 0;
  for (const Device& device : list_devices())
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Dice dice(seed);
      const StepModel model = model_on(device, dice);
      BucketSteps steps(model, {});
      if (steps.why_simulated()) continue;
      later += model.costs.interference.delays_launches() ? 1 : 0;
      for (int draw = 0; draw < 3; ++draw) {
        const std::vector<int> ends = random_ends(dice, steps.size());
        Training training;
        for (int begin = 0; const int end : ends) {
          training.buckets.emplace_back(model.works.arrival.begin() + begin,
                                        model.works.arrival.begin() + end);
          begin = end;
        }
        CAPTURE(device.name, seed, draw, model.costs.slowest_rank);
        CHECK(steps.of(ends) == predict(model, training).metrics.step);
        ++compared;
      }
    }
  CHECK(compared > 3000);
  CHECK(later > 100);
}

}  // namespace ddpsim
