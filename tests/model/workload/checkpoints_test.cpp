#include "model/workload/checkpoints.hpp"

#include <catch2/catch.hpp>

#include "model/workload/kernel_bindings.hpp"
#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;

namespace {

Workload small_gpt(int checkpointed) {
  WorkloadSize size;
  size.batch = 2;
  size.sequence = 64;
  size.checkpointed = checkpointed;
  return build_workload("net", TransformerShape{Family::gpt2, 4, 128, 512, 4, 0, 1000, 128}, size);
}

double flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels)
    if (kernel.gemm) sum += kernel.gemm->flops();
  return sum;
}

bool is_block(const Layer& layer) {
  return layer.name.starts_with("transformer.h.");
}

}  // namespace

TEST_CASE("a checkpoint runs its forward pass again before its backward pass",
          "[model][checkpoints]") {
  const Workload plain = small_gpt(0);
  for (const int every : {1, 2, 4, 5}) {
    const Workload workload = small_gpt(every);
    int checkpoints = 0;
    for (std::size_t l = 0; l < plain.layers.size(); ++l) {
      CAPTURE(every, plain.layers[l].name);
      const Layer &before = plain.layers[l], &after = workload.layers[l];
      CHECK(after.forward.size() == before.forward.size());
      CHECK(flops(after.forward) == flops(before.forward));
      if (after.backward.size() == before.backward.size()) {
        CHECK(flops(after.backward) == flops(before.backward));
        continue;
      }
      ++checkpoints;
      REQUIRE(is_block(before));
      CHECK(after.backward.size() == before.forward.size() + before.backward.size());
      CHECK(flops(after.backward) == flops(before.forward) + flops(before.backward));
      for (std::size_t k = 0; k < after.backward.size(); ++k)
        if (const Kernel& kernel = after.backward[k]; k < before.forward.size()) {
          CHECK(kernel.name == before.forward[k].name + ".again");
          CHECK(kernel.recomputed == 1);
        } else {
          CHECK(kernel.name == before.backward[k - before.forward.size()].name);
        }
    }
    CHECK(checkpoints == 4 / every);
    CHECK(arrival_order(workload) == arrival_order(plain));
  }
}

TEST_CASE(
    "gradients of a checkpoint are of its own backward kernels, and its weights are read again",
    "[model][checkpoints]") {
  const Workload plain = small_gpt(0), workload = small_gpt(1);
  const auto before = bind_gradients(plain), after = bind_gradients(workload);
  const auto weights_before = bind_weights(plain, before), weights = bind_weights(workload, after);
  for (std::size_t l = 0; l < plain.layers.size(); ++l) {
    if (!is_block(plain.layers[l])) continue;
    const std::size_t again = plain.layers[l].forward.size();
    CAPTURE(plain.layers[l].name);
    for (std::size_t k = 0; k < again; ++k) {
      CHECK(after[l][k].result == nobody);
      CHECK(after[l][k].fills.empty());
      CHECK(weights[l].backward[k] == weights_before[l].forward[k]);
    }
    for (std::size_t k = 0; k < before[l].size(); ++k) {
      CHECK(after[l][again + k].result == before[l][k].result);
      CHECK(after[l][again + k].fills == before[l][k].fills);
      CHECK(weights[l].backward[again + k] == weights_before[l].backward[k]);
    }
  }
}

TEST_CASE("a checkpoint keeps its input and needs the rest again", "[model][checkpoints][memory]") {
  const Workload plain = small_gpt(0), workload = small_gpt(2);
  for (std::size_t l = 0; l < plain.layers.size(); ++l) {
    const auto &before = plain.layers[l].memory, &after = workload.layers[l].memory;
    if (after.size() == before.size()) continue;
    REQUIRE(after.size() == 1);
    CHECK(after[0].kept == Bytes{2 * 64 * 128 * 4});
    Bytes kept, gradients, working;
    for (const ModuleMemory& each : before) {
      kept += each.kept;
      gradients += each.gradients;
      working = std::max(working, each.backward_working);
    }
    CHECK(after[0].gradients == gradients);
    CHECK(after[0].backward_working == kept + working);
    CHECK(after[0].forward_working < kept);
    CHECK(after[0].kept < kept);
  }
}

TEST_CASE("networks without such blocks have no checkpoints", "[model][checkpoints]") {
  WorkloadSize size;
  size.checkpointed = 1;
  CHECK_THROWS_WITH(build_workload("net", MlpShape{{8, 8}}, size),
                    Catch::Contains("no blocks that are modelled as activation checkpoints"));
}

TEST_CASE("selective checkpoints keep attention's result and every second product's",
          "[model][checkpoints]") {
  WorkloadSize size;
  size.batch = 2;
  size.sequence = 64;
  size.dtype = size.compute = DType::bf16;
  // Width 128, 256 between, 4 heads of which 2 have keys and values.
  const TransformerShape shape{Family::llama, 2, 128, 256, 4, 2, 1000, 0};
  const Workload plain = build_workload("net", shape, size);
  size.checkpointed = selective_checkpoints;
  const Workload selective = build_workload("net", shape, size);
  const std::int64_t tokens = 128;
  for (std::size_t l = 0; l < plain.layers.size(); ++l) {
    const Layer &before = plain.layers[l], &layer = selective.layers[l];
    CAPTURE(layer.name);
    CHECK(layer.forward.size() == before.forward.size());
    if (!layer.name.starts_with("model.layers.")) {
      CHECK(layer.backward.size() == before.backward.size());
      continue;
    }
    // The input, what queries (128), values (64), the gate (256) and the last product (128) are,
    // and attention's result with a number in fp32 for each of 4 heads.
    REQUIRE(layer.memory.size() == 1);
    CHECK(layer.memory.front().kept ==
          Bytes{tokens * (2 * (128 + 128 + 64 + 256 + 128 + 128) + 4 * 4)});
    // Keys, the projection behind attention, and up are multiplied again.
    CHECK(flops(layer.backward) - flops(before.backward) ==
          2.0 * static_cast<double>(tokens) * 128 * (64 + 128 + 256));
  }
  CHECK_THROWS_WITH(
      build_workload("net", TransformerShape{Family::gpt2, 2, 128, 256, 4, 0, 1000, 64}, size),
      Catch::Contains("selective"));
}
