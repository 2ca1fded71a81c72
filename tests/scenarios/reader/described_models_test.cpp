// Descriptions of PyTorch models (tests/experiments/described.py --keep wrote them) against the
// catalogue's architectures of the same models.

#include <algorithm>
#include <map>
#include <tuple>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "sim/predict/predict.hpp"
#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace described_models_test {
namespace {

struct Pair {
  std::string description, catalogue;
};
const std::vector<Pair> pairs{
    {"gpt2", "{model: gpt2, batch: 8, sequence: 1024}"},
    {"bert", "{model: bert-base, batch: 16, sequence: 512}"},
    {"resnet50", "{model: resnet50, batch: 32, compute: tf32, optimizer: sgd}"},
    {"llama2", "{model: llama2-7b, batch: 1, sequence: 4096, dtype: bf16}"}};

/// A product and its transposed one are the same. Of a network of convolutions it is how much they
/// multiply: cuDNN takes pictures by themselves or all together, and a description says so of each.
using Product = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

std::map<Product, int> products(const Workload& workload, std::vector<Kernel> Layer::*pass,
                                bool convolutions) {
  std::map<Product, int> found;
  for (const Layer& layer : workload.layers)
    for (const Kernel& kernel : layer.*pass)
      if (kernel.gemm && convolutions)
        ++found[{0, 0, static_cast<std::int64_t>(kernel.gemm->flops()), 0}];
      else if (kernel.gemm)
        ++found[{std::min(kernel.gemm->m, kernel.gemm->n), std::max(kernel.gemm->m, kernel.gemm->n),
                 kernel.gemm->k, kernel.gemm->batch}];
  return found;
}

Scenario scenario_of(const Scratch& scratch, const std::string& workload,
                     const std::string& device = "a100-40") {
  return read_scenario(scratch.write(
      "s.yaml", fmt::format("workload: {}\ncluster: {{device: {}}}\n", workload, device)));
}

Scenario described(const Scratch& scratch, const std::string& name,
                   const std::string& device = "a100-40") {
  return scenario_of(
      scratch, fmt::format("{{model: {}/descriptions/{}.yaml}}", DDPSIM_TEST_DATA, name), device);
}

TEST_CASE("a described model has the products of the catalogue's, pass by pass",
          "[scenarios][described_models]") {
  const Scratch scratch;
  for (const Pair& pair : pairs) {
    CAPTURE(pair.description);
    const Workload ours = described(scratch, pair.description).workload;
    const Workload theirs = scenario_of(scratch, pair.catalogue).workload;
    for (const auto pass : {&Layer::forward, &Layer::backward}) {
      const bool convolutions = pair.description == "resnet50";
      CHECK(products(ours, pass, convolutions) == products(theirs, pass, convolutions));
      CHECK(products(ours, pass, convolutions).size() > 3);
    }
    CHECK(ours.elements() == theirs.elements());
    CHECK(ours.gradient_size() == theirs.gradient_size());
  }
}

/// What both passes of a step take on the device and its host.
struct Sums {
  Duration busy, host;
};
Sums sums(const Workload& workload) {
  Sums all{};
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass) {
        REQUIRE(kernel.by_class);
        all.busy += kernel.by_class->work;
        all.host += kernel.by_class->host;
      }
  return all;
}

TEST_CASE("a model of the catalogue takes as long as its description",
          "[scenarios][described_models]") {
  const Scratch scratch;
  const auto step = [](Scenario scenario) {
    scenario.training.strategy = Strategy::none;
    return in_ms(predict(model_of(scenario), scenario.training).metrics.step);
  };
  for (const std::string device : {"a100-80", "h200", "v100"})
    for (const Pair& pair : pairs) {
      const bool has_format =
          device != "v100" || (pair.catalogue.find("tf32") == std::string::npos &&
                               pair.catalogue.find("bf16") == std::string::npos);
      if (!has_format) continue;
      CAPTURE(pair.description, device);
      const Scenario ours = scenario_of(scratch, pair.catalogue, device);
      const Scenario theirs = described(scratch, pair.description, device);
      const Sums own = sums(ours.workload), other = sums(theirs.workload);
      CHECK(in_ms(own.busy) == Approx(in_ms(other.busy)).epsilon(0.01));
      CHECK(step(ours) == Approx(step(theirs)).epsilon(0.01));
      // A description loses the time of calls whose first kernel the device leaves out.
      if (device == "h200") CHECK(in_ms(own.host) == Approx(in_ms(other.host)).epsilon(0.02));
    }
}

}  // namespace
}  // namespace described_models_test
}  // namespace ddpsim
