#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/model/parallel/schedule_story.hpp"
#include "tests/sim/predict/models.hpp"

namespace ddpsim {

using namespace std::chrono_literals;

TEST_CASE("a step is longer by the network's own collectives, which nothing hides",
          "[sim][own_collectives]") {
  const auto step = [](std::vector<OwnCollective> collectives, Strategy strategy) {
    Workload workload = timed::two_layers();
    workload.collectives = std::move(collectives);
    const StepModel model = timed::model_of(workload, timed::two_ranks());
    return predict(model, timed::training_of(strategy)).metrics.step;
  };
  // A ring of two ranks: a gather is one step of 1 ms and the bytes, a sum two steps of half of
  // them, at 1 GB/s.
  const std::vector<OwnCollective> own{{OwnCollective::Kind::all_gather, Bytes{516}, false, 0, 0},
                                       {OwnCollective::Kind::all_reduce, Bytes{512}, true, 1, 0}};
  const Duration gather = 1ms + 516ns, sum = 2ms + 512ns;
  CHECK(step(own, Strategy::none) == step({}, Strategy::none) + gather + sum);
  // Flat, with all gradients behind the backward pass, is longer by as much.
  CHECK(step(own, Strategy::flat) == step({}, Strategy::flat) + gather + sum);
  // In DDP's communicator the sum waits for no bucket of this step, but buckets wait for it.
  CHECK(step(own, Strategy::bucketed) > step({}, Strategy::bucketed) + gather);
}

}  // namespace ddpsim
