#include "model/workload/optimizer.hpp"

#include <catch2/catch.hpp>

#include "tests/model/workload/timed.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// `count` parameters of `elements` each, fp32.
Workload tensors(int count, std::int64_t elements) {
  return timed::chain(count, 1ms, 1ms, {4 * elements});
}

}  // namespace

TEST_CASE("the loop runs 14 operations of 33 passes over each tensor", "[model][optimizer]") {
  // m: mul, mul, add = 2 + 2 + 3. v: mul, pow, mul, add = 2 + 2 + 2 + 3. The update: mul, sqrt,
  // add, div, sub = 2 + 2 + 2 + 3 + 3. Decay: mul, sub = 2 + 3.
  Workload workload = tensors(2, 1000);
  workload.parameters[1].shape = {500};
  const std::vector<Kernel> kernels = optimizer_kernels(Optimizer::adamw_loop, workload);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].traffic == Bytes{33 * 4000});
  CHECK(kernels[0].launches == 14);
  CHECK(kernels[0].name == "adamw.layer0.weight");
  CHECK(kernels[1].traffic == Bytes{33 * 2000});
}

TEST_CASE("PyTorch's optimizers run over all tensors at once", "[model][optimizer]") {
  struct Law {
    Optimizer optimizer;
    int passes, operations;
  };
  // Reads and writes by operation:
  //     sgd    decay 3, momentum 2 and 3, update 3
  //     adam   lerp 3, mul 2, addcmul 3, sqrt 2, div 2, add 2, addcdiv 4; adamw: decay 2 as well
  //     fused  reads parameter, gradient and two moments, writes all but the gradient
  const Law law = GENERATE(Law{Optimizer::sgd, 11, 4}, Law{Optimizer::adam, 18, 7},
                           Law{Optimizer::adamw, 20, 8}, Law{Optimizer::adamw_fused, 7, 1});
  CAPTURE(name_of(law.optimizer));
  const std::vector<Kernel> kernels = optimizer_kernels(law.optimizer, tensors(3, 1000));
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].traffic == Bytes{law.passes * 3 * 4000});
  CHECK(kernels[0].launches == law.operations);
}

TEST_CASE("an operation over much or over many is cut into launches", "[model][optimizer]") {
  const auto launches = [](const Workload& workload) {
    return optimizer_kernels(Optimizer::adamw_fused, workload).at(0).launches;
  };
  // 320 blocks of 65536 elements a launch, 110 tensors.
  CHECK(launches(tensors(1, 320 * 65536)) == 1);
  CHECK(launches(tensors(1, 320 * 65536 + 1)) == 2);
  CHECK(launches(tensors(1, 5 * 320 * 65536)) == 5);
  CHECK(launches(tensors(110, 10)) == 1);
  CHECK(launches(tensors(111, 10)) == 2);
}

TEST_CASE("no optimizer runs no kernel", "[model][optimizer]") {
  CHECK(optimizer_kernels(Optimizer::none, tensors(3, 1000)).empty());
}

TEST_CASE("only the loop is enqueued from Python, tensor by tensor", "[model][optimizer]") {
  for (const Optimizer optimizer : all_optimizers)
    CHECK(optimizer_caller(optimizer) ==
          (optimizer == Optimizer::adamw_loop ? Caller::python_loop : Caller::library));
}

TEST_CASE("optimizers go by their names", "[model][optimizer]") {
  for (const Optimizer optimizer : all_optimizers)
    CHECK(optimizer_named(name_of(optimizer)) == optimizer);
  CHECK(name_of(Optimizer::adamw_loop) == "adamw-loop");
  CHECK_FALSE(optimizer_named("adamax"));
}
