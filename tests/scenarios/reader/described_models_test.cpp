// Descriptions of PyTorch models (tests/experiments/described.py --keep wrote them) against the
// catalogue's architectures of the same models.

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <tuple>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario_reader.hpp"
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

/// A product and its transposed one are the same. Of convolutions it is how much they multiply:
/// cuDNN takes pictures by themselves or all together, and a description says so of each.
using Product = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

std::map<Product, int> products(const Workload& workload, std::vector<Kernel> Layer::*pass) {
  std::map<Product, int> found;
  for (const Layer& layer : workload.layers)
    for (const Kernel& kernel : layer.*pass)
      if (kernel.gemm && kernel.convolution != Convolution::none)
        ++found[{0, 0, static_cast<std::int64_t>(kernel.gemm->flops()), 0}];
      else if (kernel.gemm)
        ++found[{std::min(kernel.gemm->m, kernel.gemm->n), std::max(kernel.gemm->m, kernel.gemm->n),
                 kernel.gemm->k, kernel.gemm->batch}];
  return found;
}

Scenario scenario_of(const Scratch& scratch, const std::string& workload) {
  return read_scenario(scratch.write(
      "s.yaml", fmt::format("workload: {}\ncluster: {{device: a100-40}}\n", workload)));
}

Scenario described(const Scratch& scratch, const std::string& name) {
  return scenario_of(scratch,
                     fmt::format("{{model: {}/descriptions/{}.yaml}}", DDPSIM_TEST_DATA, name));
}

/// The description without what its calls cost the host, as earlier releases wrote it: its kernels
/// are priced by the roofline that the catalogue's models are priced by.
Scenario described_without_classes(const Scratch& scratch, const std::string& name) {
  std::ifstream file(fmt::format("{}/descriptions/{}.yaml", DDPSIM_TEST_DATA, name));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  text = std::regex_replace(text, std::regex(", host: [0-9.]+ us"), "");
  return scenario_of(scratch,
                     fmt::format("{{model: {}}}", scratch.write("described.yaml", text).string()));
}

TEST_CASE("a described model has the products of the catalogue's, pass by pass",
          "[scenarios][described_models]") {
  const Scratch scratch;
  for (const Pair& pair : pairs) {
    CAPTURE(pair.description);
    const Workload ours = described(scratch, pair.description).workload;
    const Workload theirs = scenario_of(scratch, pair.catalogue).workload;
    for (const auto pass : {&Layer::forward, &Layer::backward}) {
      CHECK(products(ours, pass) == products(theirs, pass));
      CHECK(products(ours, pass).size() > 3);
    }
    CHECK(ours.elements() == theirs.elements());
    CHECK(ours.gradient_size() == theirs.gradient_size());
  }
}

TEST_CASE("by one law a described step takes as long as the catalogue's within 2 %",
          "[scenarios][described_models]") {
  const Scratch scratch;
  const auto step = [](Scenario scenario) {
    scenario.training.strategy = Strategy::none;
    return in_ms(predict(model_of(scenario), scenario.training).metrics.step);
  };
  for (const Pair& pair : pairs) {
    CAPTURE(pair.description);
    const double ours = step(described_without_classes(scratch, pair.description));
    const double theirs = step(scenario_of(scratch, pair.catalogue));
    CHECK(ours == Approx(theirs).epsilon(0.02));
  }
}

}  // namespace
}  // namespace described_models_test
}  // namespace ddpsim
