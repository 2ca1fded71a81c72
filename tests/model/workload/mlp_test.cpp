// Multilayer perceptrons, down to the kernel, and their gradients' order against PyTorch's own,
// which arrival_oracle.py asks.
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"
#include "tests/torch_oracle.hpp"

namespace ddpsim {
namespace {

using architectures::build;
using Names = std::vector<std::string>;

/// Three linears, every extent another number.
const MlpShape small{{3, 5, 7, 2}, true};
constexpr int batch = 11;

Names names(const std::vector<Kernel>& kernels) {
  Names found;
  for (const Kernel& kernel : kernels) found.push_back(kernel.name);
  return found;
}

void check_kernel(const Kernel& kernel, const Gemm& shape) {
  CAPTURE(kernel.name);
  REQUIRE(kernel.gemm);
  CHECK(kernel.gemm->m == shape.m);
  CHECK(kernel.gemm->n == shape.n);
  CHECK(kernel.gemm->k == shape.k);
  CHECK(kernel.gemm->batch == 1);
  CHECK(kernel.launches == 1);
  CHECK(kernel.traffic == Bytes{4 * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n)});
}

void check_kernel(const Kernel& kernel, std::int64_t elements_moved, int launches) {
  CAPTURE(kernel.name);
  CHECK_FALSE(kernel.gemm);
  CHECK(kernel.launches == launches);
  CHECK(kernel.traffic == Bytes{4 * elements_moved});
}

std::string joined(const Names& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string arrivals(const Workload& workload) {
  Names order;
  for (const int index : arrival_order(workload))
    order.push_back(workload.parameters[static_cast<std::size_t>(index)].name);
  return joined(order);
}

TEST_CASE("a perceptron's parameters are those of torch.nn.Sequential", "[model][mlp]") {
  using Shape = std::vector<std::int64_t>;
  struct Row {
    const char* name;
    Shape shape;
  };
  // A Linear and the ReLU behind it take a number each; weights are [out, in].
  const std::vector<Row> expected{{"0.weight", {5, 3}}, {"0.bias", {5}},      {"2.weight", {7, 5}},
                                  {"2.bias", {7}},      {"4.weight", {2, 7}}, {"4.bias", {2}}};
  const Workload biased = build(small, batch);
  REQUIRE(biased.parameters.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(biased.parameters[i].name == expected[i].name);
    CHECK(biased.parameters[i].shape == expected[i].shape);
  }
  CHECK(biased.elements() == 3 * 5 + 5 + 5 * 7 + 7 + 7 * 2 + 2);

  const Workload plain = build(MlpShape{small.widths, false}, batch);
  REQUIRE(plain.parameters.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(plain.parameters[i].name == expected[2 * i].name);
  CHECK(plain.elements() == 3 * 5 + 5 * 7 + 7 * 2);
}

TEST_CASE("a Linear and its ReLU are a layer, the last has the loss", "[model][mlp]") {
  const Workload workload = build(small, batch);
  REQUIRE(workload.layers.size() == 3);
  CHECK(workload.layers[0].name == "0");
  CHECK(workload.layers[1].name == "2");
  CHECK(workload.layers[2].name == "4");
  CHECK(names(workload.layers[1].forward) == Names{"2", "3"});
  CHECK(names(workload.layers[1].backward) ==
        Names{"3.grad", "2.grad_data", "2.grad_weight", "2.grad_bias"});
  CHECK(names(workload.layers[2].forward) == Names{"4", "loss"});
  CHECK(names(workload.layers[2].backward) ==
        Names{"loss.grad", "4.grad_data", "4.grad_weight", "4.grad_bias"});
}

TEST_CASE("nothing computes the gradient of a perceptron's input", "[model][mlp]") {
  const Workload workload = build(small, batch);
  CHECK(names(workload.layers[0].backward) == Names{"1.grad", "0.grad_weight", "0.grad_bias"});
  CHECK(workload.parameters[0].ready_after == 2);
  CHECK(workload.parameters[1].ready_after == 2);
  const Workload plain = build(MlpShape{small.widths, false}, batch);
  CHECK(names(plain.layers[0].backward) == Names{"1.grad", "0.grad_weight"});
  CHECK(plain.parameters[0].ready_after == 1);
}

TEST_CASE("a Linear is a product forward and, backward, one for each operand and a sum",
          "[model][mlp]") {
  // Eleven samples of five features to seven: [11, 5] x [5, 7]; back to the input [11, 7] x [7, 5];
  // to the weight [7, 11] x [11, 5]; the bias sums what arrived, [11, 7], over the samples.
  const Layer layer = build(small, batch).layers[1];
  check_kernel(layer.forward[0], {.m = 11, .n = 7, .k = 5});
  check_kernel(layer.backward[1], {.m = 11, .n = 5, .k = 7});
  check_kernel(layer.backward[2], {.m = 7, .n = 5, .k = 11});
  check_kernel(layer.backward[3], 11 * 7, 1);
}

TEST_CASE("a ReLU reads and writes, its gradient reads two", "[model][mlp]") {
  const Layer layer = build(small, batch).layers[1];
  check_kernel(layer.forward[1], 2 * 11 * 7, 1);
  check_kernel(layer.backward[0], 3 * 11 * 7, 1);
}

TEST_CASE("the mean squared error is two kernels forward and three backward", "[model][mlp]") {
  // The squared difference of outputs and targets (two read, one written) and its mean (one read);
  // a one, a gradient of zeros, and the difference written into it.
  const Layer layer = build(small, batch).layers[2];
  check_kernel(layer.forward[1], (3 + 1) * 11 * 2, 2);
  check_kernel(layer.backward[0], (0 + 1 + 3) * 11 * 2, 3);
}

TEST_CASE("one Linear alone is a network", "[model][mlp]") {
  const Workload workload = build(MlpShape{{3, 2}, false}, batch);
  REQUIRE(workload.layers.size() == 1);
  CHECK(names(workload.layers[0].forward) == Names{"0", "loss"});
  CHECK(names(workload.layers[0].backward) == Names{"loss.grad", "0.grad_weight"});
}

TEST_CASE("widths that cannot be are refused", "[model][mlp]") {
  const auto refuses = [](const std::vector<int>& widths, int samples, const std::string& about) {
    CHECK_THROWS_WITH(build(MlpShape{widths, true}, samples),
                      Catch::StartsWith("net: ") && Catch::Contains(about));
  };
  refuses({}, 1, "at least two (its input's and its output's), got 0");
  refuses({8}, 1, "at least two (its input's and its output's), got 1");
  refuses({8, 0, 8}, 1, "widths must be positive, got 0");
  refuses({-8, 8}, 1, "widths must be positive, got -8");
  refuses({8, 8}, 0, "batch must be positive, got 0");
  // 2^24 x 2^25 and twice 2^24 x 2^24 are beyond 2^48.
  refuses({1 << 24, 1 << 25}, 1, "a weight would hold 5.63e+14 elements");
  refuses({1 << 24, 1 << 24, 1 << 24}, 1, "the network would hold 5.63e+14 elements");
  refuses({1, 1 << 25}, 1 << 24, "an activation would hold 5.63e+14 elements");
  CHECK_NOTHROW(build(MlpShape{{1 << 24, 1 << 24}, false}));
}

TEST_CASE("a perceptron's gradients arrive as in PyTorch", "[model][mlp][oracle]") {
  const std::vector<int> widths{6, 9, 7, 8, 4};
  const std::optional<std::string> answers =
      ask_torch("model/workload/arrival_oracle.py", "1 6 9 7 8 4\n0 6 9 7 8 4\n1 6 4\n0 6 4\n");
  if (!answers) return;
  std::istringstream lines(*answers);
  for (const MlpShape& shape : {MlpShape{widths, true}, MlpShape{widths, false},
                                MlpShape{{6, 4}, true}, MlpShape{{6, 4}, false}}) {
    std::string torch;
    REQUIRE(std::getline(lines, torch));
    CHECK(arrivals(build(shape)) == torch);
  }
}

TEST_CASE("of one Linear the bias arrives before the weight", "[model][mlp]") {
  CHECK(arrivals(build(small)) == "4.bias 4.weight 2.bias 2.weight 0.bias 0.weight");
  CHECK(arrivals(build(MlpShape{small.widths, false})) == "4.weight 2.weight 0.weight");
}

}  // namespace
}  // namespace ddpsim
