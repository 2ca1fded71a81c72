#include "backend/gloo/memory.hpp"

#include <map>

#include <catch2/catch.hpp>

#include "model/ddp/build_schedule.hpp"
#include "model/ddp/peak_memory.hpp"
#include "model/workload/architecture.hpp"

using namespace ddpsim;

namespace {

/// Bytes of memory that any of the spans covers, each byte once.
class Covered {
 public:
  void add(std::span<const float> span) {
    if (span.empty()) return;
    for (const float& value : span) places_[&value] = true;
  }
  Bytes size() const { return static_cast<std::int64_t>(places_.size()) * Bytes{sizeof(float)}; }

 private:
  std::map<const float*, bool> places_;
};

}  // namespace

TEST_CASE("what is predicted of parameters, gradients, buckets and state is what Gloo's ranks take",
          "[backend][gloo][memory]") {
  const Workload workload =
      build_workload("net", MlpShape{{64, 96, 96, 10}, true}, WorkloadSize{.batch = 2});
  Cluster cluster;
  cluster.ranks_per_node = 2;
  cluster.device.synchronous = true;
  Training training;
  training.bucket_cap = 16 * KiB;
  training.strategy =
      GENERATE(Strategy::naive, Strategy::overlap, Strategy::flat, Strategy::bucketed);
  training.gradient_as_bucket_view = GENERATE(false, true);
  const Optimizer optimizer = GENERATE(Optimizer::sgd, Optimizer::adamw);
  CAPTURE(name_of(training.strategy), training.gradient_as_bucket_view, name_of(optimizer));

  const Schedule schedule = build_schedule(StepWorks(workload, cluster, optimizer), training);
  const StepMemory predicted = step_memory(workload, optimizer, training, schedule);
  Memory memory(workload, optimizer, 0);
  memory.arrange(schedule);
  Covered parameters, state, gradients;
  for (std::int32_t p = 0; p < static_cast<std::int32_t>(workload.parameters.size()); ++p) {
    parameters.add(memory.parameter(p));
    gradients.add(memory.gradient(p));
    state.add(memory.momentum(p));
    if (optimizer == Optimizer::adamw) state.add(memory.variance(p));
  }
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(schedule.buckets.size()); ++b)
    gradients.add(memory.bucket(b));
  CHECK(parameters.size() == predicted.parameters);
  CHECK(gradients.size() == predicted.gradients + predicted.buckets);
  CHECK(state.size() == predicted.optimizer);
}
