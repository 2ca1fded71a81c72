#include "model/workload/optimizer.hpp"

#include <set>
#include <string_view>

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
  //     plain  update 3
  //     rmsprop   mul 2, addcmul 3, sqrt 2, add 2, addcdiv 4
  //     novograd  norms of gradients 1, of two kernels; the update reads parameter, gradient and
  //            moment, writes parameter and moment: 5
  //     lamb   norms of gradients 1, parameters 1, updates 1, each of two kernels; the update, as
  //            fused Adam 7, and its scaled addition 3
  const Law law = GENERATE(Law{Optimizer::sgd, 11, 4}, Law{Optimizer::adam, 18, 7},
                           Law{Optimizer::adamw, 20, 8}, Law{Optimizer::adamw_fused, 7, 1},
                           Law{Optimizer::sgd_plain, 3, 1}, Law{Optimizer::lamb, 13, 8},
                           Law{Optimizer::rmsprop, 13, 5}, Law{Optimizer::novograd, 6, 3});
  CAPTURE(name_of(law.optimizer));
  const std::vector<Kernel> kernels = optimizer_kernels(law.optimizer, tensors(3, 1000));
  REQUIRE(kernels.size() == 1);
  CHECK(kernels[0].traffic == Bytes{law.passes * 3 * 4000});
  CHECK(kernels[0].launches == law.operations);
}

TEST_CASE("clipping reads all gradients for their norm and scales them", "[model][optimizer]") {
  // Three tensors of 4000 bytes. Norms: zeros, the norms, their sums. The factor: the norms as one
  // tensor, its norm, a sum, a reciprocal, a product, a limit. The product: read and write.
  const std::vector<Kernel> kernels = clip_kernels(tensors(3, 1000));
  REQUIRE(kernels.size() == 3);
  CHECK(kernels[0].traffic == Bytes{12000 + 3 * 4});
  CHECK(kernels[0].launches == 3);
  CHECK(kernels[1].launches == 6);
  CHECK(kernels[2].traffic == Bytes{2 * 12000});
  CHECK(kernels[2].launches == 1);
  // 111 tensors take two launches of either operation over all of them.
  CHECK(clip_kernels(tensors(111, 1000))[0].launches == 4);
  CHECK(clip_kernels(tensors(111, 1000))[2].launches == 2);
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

TEST_CASE("loops are enqueued from Python, tensor by tensor", "[model][optimizer]") {
  for (const Optimizer optimizer : all_optimizers) {
    const bool loop = optimizer == Optimizer::adamw_loop || optimizer == Optimizer::adafactor ||
                      optimizer == Optimizer::muon || optimizer == Optimizer::lion ||
                      optimizer == Optimizer::adam_8bit;
    CHECK(optimizer_caller(optimizer) == (loop ? Caller::python_loop : Caller::library));
  }
}

TEST_CASE("Adafactor keeps a value for each row and each column", "[model][optimizer]") {
  Workload workload = tensors(3, 1200);
  workload.parameters[0].shape = {30, 40};
  workload.parameters[1].shape = {10, 12, 5, 2};  // 120 matrices of 5 x 2
  const std::vector<Kernel> kernels = optimizer_kernels(Optimizer::adafactor, workload);
  REQUIRE(kernels.size() == 3);
  // norm 1, rows' and columns' norms 2, product 1, div 2, clamp 2, rsqrt 2, mul 3, norm 1, add 3
  CHECK(kernels[0].traffic == Bytes{17 * 4800});
  CHECK(kernels[0].launches == 18);
  // norm 1, square 2, lerp 3, clone 2, clamp 2, rsqrt 2, mul 3, norm 1, add 3
  CHECK(kernels[2].traffic == Bytes{19 * 4800});
  CHECK(kernels[2].launches == 9);
  CHECK(optimizer_state(Optimizer::adafactor, workload, 0) == Bytes{4 * (30 + 40)});
  CHECK(optimizer_state(Optimizer::adafactor, workload, 1) == Bytes{4 * (120 * 5 + 120 * 2)});
  CHECK(optimizer_state(Optimizer::adafactor, workload, 2) == Bytes{4800});
}

TEST_CASE("Lion runs 8 operations of 19 passes over each tensor and keeps one state",
          "[model][optimizer]") {
  // Decay 2; the update mul 2, mul 2, add 3, sign 2, add 3; the moment mul 2, add 3.
  const Workload workload = tensors(2, 1000);
  const std::vector<Kernel> kernels = optimizer_kernels(Optimizer::lion, workload);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].traffic == Bytes{19 * 4000});
  CHECK(kernels[0].launches == 8);
  CHECK(optimizer_state(Optimizer::lion, workload) == Bytes{8000});
}

TEST_CASE("8-bit Adam keeps two bytes an element and a scale for 256, but of small tensors fp32",
          "[model][optimizer]") {
  Workload workload = tensors(2, 10'000);
  workload.parameters[1].shape = {4000};
  // 10000 elements: 40 scales of 4 bytes beside each state. Parameter and gradient are read, the
  // parameter written; both states are read and written.
  const Bytes state{2 * (10'000 + 40 * 4)}, small{2 * 4 * 4000};
  CHECK(optimizer_state(Optimizer::adam_8bit, workload, 0) == state);
  CHECK(optimizer_state(Optimizer::adam_8bit, workload, 1) == small);
  const std::vector<Kernel> kernels = optimizer_kernels(Optimizer::adam_8bit, workload);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].traffic == Bytes{3 * 40'000} + 2 * state);
  CHECK(kernels[0].launches == 1);
  CHECK(kernels[1].traffic == Bytes{7 * 16'000});
}

TEST_CASE("NovoGrad and RMSprop keep one state, and NovoGrad a number for each tensor",
          "[model][optimizer]") {
  const Workload workload = tensors(2, 1000);
  CHECK(optimizer_state(Optimizer::rmsprop, workload) == Bytes{8000});
  CHECK(optimizer_state(Optimizer::novograd, workload) == Bytes{8000 + 2 * 4});
}

TEST_CASE("Muon orthogonalises the matrices between the first and the last layer",
          "[model][optimizer]") {
  Workload workload = tensors(4, 1200);
  workload.parameters[0].shape = {30, 40};
  workload.parameters[1].shape = {40, 30};
  workload.parameters[3].shape = {30, 40};
  const std::vector<Kernel> kernels = optimizer_kernels(Optimizer::muon, workload);
  // The second alone has momentum, 5 x 3 products, update; then AdamW of the other three.
  REQUIRE(kernels.size() == 1 + 15 + 1 + 1);
  double flops = 0;
  for (const Kernel& kernel : kernels)
    if (kernel.gemm) {
      CHECK(kernel.type == DType::bf16);
      flops += kernel.gemm->flops();
    }
  // X is 30 x 40: X X^T, A A, and B X.
  CHECK(flops == 5 * (2.0 * 30 * 30 * 40 + 2.0 * 30 * 30 * 30 + 2.0 * 30 * 30 * 40));
  CHECK(kernels.back().traffic == Bytes{20 * 3 * 4800});
  CHECK(optimizer_state(Optimizer::muon, workload) == Bytes{(1 + 3 * 2) * 4800});
}

TEST_CASE("optimizers keep state in the parameters' format", "[model][optimizer]") {
  Workload workload = tensors(2, 1000);
  const auto state = [&](Optimizer optimizer) { return optimizer_state(optimizer, workload); };
  CHECK(state(Optimizer::none) == Bytes{});
  CHECK(state(Optimizer::sgd_plain) == Bytes{});
  CHECK(state(Optimizer::sgd) == Bytes{8000});
  for (const Optimizer optimizer : {Optimizer::adam, Optimizer::adamw, Optimizer::adamw_fused,
                                    Optimizer::adamw_loop, Optimizer::lamb})
    CHECK(state(optimizer) == Bytes{16000});
  for (Parameter& parameter : workload.parameters) parameter.dtype = DType::bf16;
  CHECK(state(Optimizer::adamw) == Bytes{8000});
}

TEST_CASE("every optimizer has a name of its own", "[model][optimizer]") {
  std::set<std::string_view> names;
  for (const Optimizer optimizer : all_optimizers) names.insert(name_of(optimizer));
  CHECK(names.size() == all_optimizers.size());
  CHECK(name_of(Optimizer::adamw_loop) == "adamw-loop");
}
