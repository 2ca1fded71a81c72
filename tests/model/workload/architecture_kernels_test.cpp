#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;

namespace {

/// Elements of the weights an xl-2025 multiplies with: all but the embedding and the gains.
constexpr std::int64_t xl_width = 1600;
constexpr std::int64_t xl_embedding = 10000 * xl_width;
constexpr std::int64_t xl_matrices = 1'998'235'200 - xl_embedding - (2 * 48 + 1) * xl_width;

using PassOf = std::vector<Kernel> Layer::*;

/// By how much backward's products in fused kernels of attention are more than twice forward's:
/// five to two, as the scores are computed anew.
std::int64_t fused_excess(const Workload& workload) {
  const auto work = [](const Kernel& kernel) {
    return 2 * kernel.gemm->m * kernel.gemm->n * kernel.gemm->k * kernel.gemm->batch;
  };
  std::int64_t excess = 0;
  for (const Layer& layer : workload.layers)
    for (const Kernel& backward : layer.backward)
      for (const Kernel& forward : layer.forward)
        if (backward.gemm && forward.gemm && backward.name == forward.name + ".grad")
          excess += work(backward) - 2 * work(forward);
  return excess;
}

Bytes traffic(const Workload& workload, PassOf pass) {
  Bytes sum;
  for (const Layer& layer : workload.layers)
    for (const Kernel& kernel : layer.*pass) sum += kernel.traffic;
  return sum;
}

int launches(const std::vector<Kernel>& pass) {
  int sum = 0;
  for (const Kernel& kernel : pass) sum += kernel.launches;
  return sum;
}

}  // namespace

TEST_CASE("a GEMM appears once forward and twice backward", "[model][architecture_kernels]") {
  // The data needs no gradient: the first convolution, or Linear, lacks one product.
  const std::int64_t resnet_stem = 2 * (2 * 112 * 112) * 64 * (3 * 7 * 7);
  const std::int64_t vgg_stem = 2 * (2 * 224 * 224) * 64 * (3 * 3 * 3);
  const std::int64_t first_linear = 2 * 2 * 1024 * 512;
  for (const Workload& workload : one_of_each_family()) {
    const std::string& first = workload.layers.front().name;
    const std::int64_t missing = first == "stem"     ? resnet_stem
                                 : first == "stage0" ? vgg_stem
                                 : first == "0"      ? first_linear
                                                     : 0;
    CHECK(multiplied(workload, &Layer::backward) ==
          2 * multiplied(workload, &Layer::forward) - missing + fused_excess(workload));
  }
}

TEST_CASE("a transformer multiplies every weight with every token",
          "[model][architecture_kernels]") {
  // Beside the weights, attention: two products of 2 s^2 d a sample and block.
  const std::int64_t batch = 8, sequence = 128;
  const std::int64_t attention = 48 * batch * 2 * 2 * sequence * sequence * xl_width;
  CHECK(multiplied(build(cs336_xl_2025, 8, 128), &Layer::forward) ==
        2 * xl_matrices * batch * sequence + attention);
}

TEST_CASE("ResNet-50 multiplies 4.09 billion times a picture", "[model][architecture_kernels]") {
  // Source: torchvision's model table, 4.09 GFLOPS for ResNet50_Weights (multiply-adds at 224).
  const double multiplications =
      static_cast<double>(multiplied(build(resnet50, 1), &Layer::forward)) / 2e9;
  CHECK(multiplications == Approx(4.09).margin(0.005));
}

TEST_CASE(
    "EfficientNet-B0 multiplies 0.39 billion times a picture of 224, and B4 4.39 billion of "
    "380",
    "[model][architecture_kernels]") {
  // Source: torchvision's model table, 0.39 and 4.39 GFLOPS (multiply-adds).
  const auto multiplications = [](const EfficientNetShape& shape, int image) {
    WorkloadSize size;
    size.image = image;
    return static_cast<double>(multiplied(build_workload("net", shape, size), &Layer::forward)) /
           2e9;
  };
  CHECK(multiplications({}, 224) == Approx(0.39).margin(0.005));
  CHECK(multiplications({1.4, 1.8}, 380) == Approx(4.39).margin(0.03));
}

TEST_CASE("a GEMM moves its operands and its result once", "[model][architecture_kernels]") {
  const Workload workload = build(cs336_small);
  const Kernel& w1 = workload.layers[1].forward[11];
  REQUIRE(w1.name == "ffn.w1");
  // 32 tokens: [32, 768] x [768, 3072] in fp32.
  CHECK(w1.traffic == Bytes{4 * (32 * 768 + 768 * 3072 + 32 * 3072)});
  CHECK(w1.launches == 1);
}

TEST_CASE("work grows with the batch, one sample like the next", "[model][architecture_kernels]") {
  const auto one = one_of_each_family(1), two = one_of_each_family(2),
             three = one_of_each_family(3);
  for (std::size_t i = 0; i < one.size(); ++i) {
    for (const PassOf pass : {&Layer::forward, &Layer::backward}) {
      CHECK(multiplied(two[i], pass) == 2 * multiplied(one[i], pass));
      CHECK(traffic(two[i], pass) - traffic(one[i], pass) ==
            traffic(three[i], pass) - traffic(two[i], pass));
    }
  }
}

TEST_CASE("what moves at any batch are the weights", "[model][architecture_kernels]") {
  const Workload one = build(cs336_xl_2025, 1), two = build(cs336_xl_2025, 2);
  const auto fixed = [&](PassOf pass) { return 2 * traffic(one, pass) - traffic(two, pass); };
  CHECK(fixed(&Layer::forward) == Bytes{4 * xl_matrices});
  // Read for the data gradient; their gradients written, then copied; the embedding's filled with
  // zeros.
  CHECK(fixed(&Layer::backward) == Bytes{4 * (4 * xl_matrices + xl_embedding)});
}

TEST_CASE("formats set what elements weigh and how GEMMs multiply",
          "[model][architecture_kernels]") {
  WorkloadSize size{2, 16, 224, DType::fp32, DType::tf32};
  const Workload wide = build_workload("net", cs336_small, size);
  size.dtype = size.compute = DType::bf16;
  const Workload narrow = build_workload("net", cs336_small, size);
  for (const std::size_t product : {std::size_t{1}, std::size_t{11}})
    CHECK(wide.layers[1].forward[product].traffic == 2 * narrow.layers[1].forward[product].traffic);
  CHECK(wide.gradient_size() == 2 * narrow.gradient_size());
  CHECK(wide.layers[1].forward[1].type == DType::tf32);
  CHECK(narrow.layers[1].forward[1].type == DType::bf16);
  // A norm of bf16 computes in fp32: it casts its input, and its result back; so does backward.
  CHECK(launches(narrow.layers[1].forward) == launches(wide.layers[1].forward) + 2 * 2);
  CHECK(launches(narrow.layers[1].backward) == launches(wide.layers[1].backward) + 2 * 2);
}

TEST_CASE("a CS336 block is few kernels of many launches", "[model][architecture_kernels]") {
  const Layer block = build(cs336_xl_2025, 8, 128).layers[2];
  CHECK(block.forward.size() <= 15);
  CHECK(block.backward.size() <= 24);
  // 9 GEMMs; norms 2 x 6, additions 2, rotary 2 x 10, mask 5, copies 2, softmax 7, SwiGLU 3.
  CHECK(launches(block.forward) == 60);
  // 18 GEMMs; norms 2 x 14, additions where a tensor was used twice 2 + 3, rotary 2 x 8, copies 4,
  // softmax 16, SwiGLU 6, weight gradients brought into the weights' layout 7.
  CHECK(launches(block.backward) == 100);
}

TEST_CASE("blocks of the other families are as lean", "[model][architecture_kernels]") {
  for (const Workload& workload : one_of_each_family()) {
    for (const Layer& layer : workload.layers) {
      CHECK(layer.forward.size() <= 15);
      // BERT's: 6 linears of 3, 4 products of attention, 4 runs between them.
      CHECK(layer.backward.size() <= 26);
    }
  }
}
