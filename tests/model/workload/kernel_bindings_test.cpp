#include "model/workload/kernel_bindings.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;

namespace {

/// The parameters of a pass, without kernels that have none.
std::vector<std::int32_t> read(const std::vector<std::int32_t>& weights) {
  std::vector<std::int32_t> all;
  std::copy_if(weights.begin(), weights.end(), std::back_inserter(all),
               [](std::int32_t each) { return each != nobody; });
  return all;
}

std::vector<std::int32_t> written(const std::vector<GradientBinding>& kernels) {
  std::vector<std::int32_t> all;
  for (const GradientBinding& each : kernels)
    if (each.result != nobody) all.push_back(each.result);
  return all;
}

}  // namespace

TEST_CASE(
    "products of a block read weights in the order of their gradients, and forward the other "
    "way round",
    "[model][kernel_bindings]") {
  for (const Workload& workload :
       {build(gpt2_small), build(cs336_small), build(bert_base), build(llama2_7b)}) {
    const auto gradients = bind_gradients(workload);
    const auto weights = bind_weights(workload, gradients);
    int blocks = 0;
    for (std::size_t l = 1; l + 1 < workload.layers.size(); ++l) {
      CAPTURE(workload.layers[l].name);
      std::vector<std::int32_t> order = written(gradients[l]);
      if (order.size() < 4) continue;  // no block
      ++blocks;
      CHECK(read(weights[l].backward) == order);
      std::ranges::reverse(order);
      CHECK(read(weights[l].forward) == order);
      // A product's input gets its gradient right before the weight does.
      for (std::size_t k = 0; k < gradients[l].size(); ++k)
        if (const std::int32_t weight = weights[l].backward[k]; weight != nobody) {
          const auto next = std::find_if(gradients[l].begin() + static_cast<std::ptrdiff_t>(k),
                                         gradients[l].end(),
                                         [](const auto& each) { return each.result != nobody; });
          REQUIRE(next != gradients[l].end());
          CHECK(next->result == weight);
        }
    }
    CHECK(blocks >= 12);
  }
}
