#include "model/parallel/write/step_works.hpp"

#include <catch2/catch.hpp>

#include "model/cost/kernel_cost.hpp"
#include "tests/model/cost/priced.hpp"
#include "tests/model/parallel/schedule_story.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

TEST_CASE("hooks hang on the kernel that completes their gradient", "[model][step_works]") {
  const StepWorks works = two_layer_works();
  CHECK(works.arrival == std::vector<int>{2, 1, 0});
  REQUIRE(works.layers.size() == 2);
  CHECK(works.layers[0].completes == std::vector<std::vector<std::int32_t>>{{0}});
  CHECK(works.layers[1].completes == std::vector<std::vector<std::int32_t>>{{2, 1}, {}});
}

TEST_CASE("kernels keep their layers and callers", "[model][step_works]") {
  Cluster cluster = two_ranks();
  cluster.launch.kernel = 1us;
  const StepWorks works = two_layer_works();
  const auto cost = [&](KnownWork known) { return cost_of(works, CostModel(cluster), known); };
  REQUIRE(works.layers.size() == 2);
  CHECK(cost(works.layers[1].backward.at(1)).work == 3ms);
  CHECK(in_us(cost(works.layers[0].forward.at(0)).host) ==
        Approx(launches_per_operation(Caller::forward_module)));
  CHECK(in_us(cost(works.layers[0].backward.at(0)).host) ==
        Approx(launches_per_operation(Caller::autograd)));
  CHECK(cost(works.copy_in[0]).host == 1us);
}

TEST_CASE("parameters are used by kernels, which are counted in the order of their pass",
          "[model][step_works]") {
  // Forward runs 0.0 and 1.0, backward 1.0, 1.1 and 0.0.
  Workload workload = two_layers();
  workload.parameters[1].backward = KernelRange{0, 0};
  workload.parameters[2].backward = KernelRange{0, 1};
  workload.frozen_parameters.push_back({"d", {10}, DType::fp32, 1, {}, KernelRange{1, 1}});
  const StepWorks works = works_of(workload, two_ranks());
  CHECK(works.layers[0].backward_kernels == KernelRange{2, 2});
  CHECK(works.layers[1].backward_kernels == KernelRange{0, 1});
  REQUIRE(works.uses.size() == 3);
  CHECK(works.uses[0].layer == 0);
  CHECK(works.uses[0].forward == KernelRange{0, 0});
  CHECK(works.uses[0].backward == KernelRange{2, 2});
  CHECK(works.uses[1].layer == 1);
  CHECK(works.uses[1].forward == KernelRange{1, 1});
  CHECK(works.uses[1].backward == KernelRange{0, 0});
  CHECK(works.uses[2].backward == KernelRange{0, 1});
  REQUIRE(works.frozen_uses.size() == 1);
  CHECK(works.frozen_uses[0].forward == KernelRange{1, 1});  // all of its layer's: nobody said
  CHECK(works.frozen_uses[0].backward == KernelRange{1, 1});
  CHECK(works.in_backward() == std::vector<std::int32_t>{2, 1, 0});
}

TEST_CASE("a measured optimizer stands in place of the law", "[model][step_works]") {
  Workload workload = two_layers();
  workload.optimizer = 5ms;
  const StepWorks measured(workload, two_ranks(), Optimizer::adamw_loop);
  REQUIRE(measured.optimizer.size() == 1);
  CHECK(cost_of(measured, CostModel(two_ranks()), measured.optimizer[0]).work == 5ms);
  workload.optimizer.reset();
  CHECK(StepWorks(workload, two_ranks(), Optimizer::adamw_loop).optimizer.size() == 3);
  CHECK(StepWorks(workload, two_ranks(), Optimizer::none).optimizer.empty());
}

TEST_CASE("a broadcast of buffers costs the host each of them, not the bytes alone",
          "[model][step_works]") {
  Cluster cluster = two_ranks();
  cluster.launch.kernel = 6us;  // of the host that the figures are of
  const auto host = [&](int tensors) {
    Workload workload = two_layers();
    workload.buffers = {{tensors, Bytes{1 << 20}}};
    const StepWorks works(workload, cluster, Optimizer::none);
    const CostModel model(cluster);
    return in_us(cost_of(works, model, works.buffers.at(0).flatten).host +
                 cost_of(works, model, works.buffers.at(0).restore).host);
  };
  // ResNet-101 has 312, on which a profile of its steps spends 6.6 ms.
  CHECK(host(312) == Approx(6600).margin(100));
  CHECK(host(200) - host(100) == Approx(host(300) - host(200)));
}

TEST_CASE("equal pieces of work are one, whatever layer or parameter they belong to",
          "[model][step_works]") {
  // Seven layers alike: one forward kernel, one backward kernel, one copy in, a copy out and a
  // division of a gradient by DDP and by a loop in Python, one sum of two, and all gradients
  // concatenated and divided.
  const StepWorks works = works_of(chain(7, 1ms, 2ms, {1000}), two_ranks());
  CHECK(works.table.size() == 10);
  CHECK(works.layers[0].forward[0].number == works.layers[6].forward[0].number);
  CHECK(works.layers[0].forward[0].number != works.layers[0].backward[0].number);
  CHECK(works.copy_in[0].number == works.copy_in[6].number);
}

TEST_CASE("of the cluster only what shapes a schedule counts", "[model][step_works]") {
  Cluster cluster = two_ranks();
  cluster.collectives_at_once = 2;
  cluster.through_host = gigabytes_per_second(10);
  cluster.nodes = 3;
  const StepWorks gpus = works_of(two_layers(), cluster);
  CHECK(gpus.device.ranks == 6);
  CHECK(gpus.ranks_per_node == 2);
  CHECK(gpus.device.collectives_at_once == 2);
  CHECK(gpus.device.through_host);
  CHECK_FALSE(gpus.device.synchronous);
  // Where kernels run on the host, collectives there need no copies.
  cluster.device.synchronous = true;
  CHECK_FALSE(works_of(two_layers(), cluster).device.through_host);
  CHECK(works_of(two_layers(), cluster).device.synchronous);
}
