#include "model/workload/freeze.hpp"

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;

namespace {

Workload small_llama() {
  WorkloadSize size;
  size.batch = 2;
  size.sequence = 64;
  return build_workload("net", TransformerShape{Family::llama, 3, 128, 256, 4, 2, 1000, 0}, size);
}

Workload frozen_where(const Workload& workload, bool (*matches)(const std::string&)) {
  std::vector<bool> which;
  for (const Parameter& each : workload.parameters) which.push_back(matches(each.name));
  return freeze(workload, which);
}

int products(const std::vector<Kernel>& kernels) {
  return static_cast<int>(
      std::ranges::count_if(kernels, [](const Kernel& each) { return each.gemm.has_value(); }));
}

}  // namespace

TEST_CASE("layers in front of all that is trained run forward alone", "[model][freeze]") {
  const Workload all = small_llama();
  const Workload some = frozen_where(all, [](const std::string& name) {
    return name.starts_with("model.embed") || name.starts_with("model.layers.0.");
  });
  check(some);
  CHECK(some.parameters.size() + some.frozen_parameters.size() == all.parameters.size());
  CHECK(some.frozen == all.gradient_size() - some.gradient_size());
  for (std::size_t l = 0; l < all.layers.size(); ++l) {
    const bool trains = l >= 2;  // the embedding, and the first block
    CHECK(some.layers[l].forward.size() == all.layers[l].forward.size());
    CHECK(some.layers[l].backward.size() == (trains ? all.layers[l].backward.size() : 0));
    for (const ModuleMemory& each : some.layers[l].memory)
      if (!trains) CHECK(each.kept == Bytes{});
  }
}

TEST_CASE("a frozen weight's gradient is not multiplied", "[model][freeze]") {
  const Workload all = small_llama();
  const Workload some = frozen_where(
      all, [](const std::string& name) { return name.find("layers.1.mlp") != std::string::npos; });
  check(some);
  for (std::size_t l = 0; l < all.layers.size(); ++l) {
    const int fewer = all.layers[l].name == "model.layers.1" ? 3 : 0;
    CHECK(products(all.layers[l].backward) - products(some.layers[l].backward) == fewer);
  }
  // Every gradient that is left is complete where it was, by the kernel of the same name.
  for (const Parameter& each : some.parameters) {
    const auto before = std::ranges::find(all.parameters, each.name, &Parameter::name);
    const auto name_of = [&](const Workload& workload, const Parameter& parameter) {
      return workload.layers[static_cast<std::size_t>(parameter.layer)]
          .backward[static_cast<std::size_t>(parameter.ready_after)]
          .name;
    };
    CHECK(name_of(some, each) == name_of(all, *before));
  }
}

TEST_CASE("what is left of a module is where its kernels are", "[model][freeze]") {
  const Workload all = small_llama();
  const auto names = [](const Workload& workload, int layer, const KernelRange& range) {
    std::vector<std::string> found;
    for (int k = range.first; k <= range.last; ++k)
      found.push_back(workload.layers[static_cast<std::size_t>(layer)]
                          .backward[static_cast<std::size_t>(k)]
                          .name);
    return found;
  };
  const Workload some = frozen_where(
      all, [](const std::string& name) { return name.find("layers.1.mlp") != std::string::npos; });
  for (const Parameter& each : some.parameters) {
    const auto before = std::ranges::find(all.parameters, each.name, &Parameter::name);
    REQUIRE(each.backward);
    CHECK(names(some, each.layer, *each.backward) == names(all, each.layer, *before->backward));
  }
  REQUIRE(some.frozen_parameters.size() == 3);
  for (const FrozenParameter& each : some.frozen_parameters) {
    const auto before = std::ranges::find(all.parameters, each.name, &Parameter::name);
    CHECK(each.forward == before->forward);
    std::vector<std::string> kernels = names(all, each.layer, *before->backward);
    std::erase_if(kernels, [](const std::string& name) { return name.ends_with("grad_weight"); });
    REQUIRE(each.backward);
    CHECK(names(some, each.layer, *each.backward) == kernels);
  }
  // In front of all that is trained nothing is left.
  const Workload late = frozen_where(all, [](const std::string& name) {
    return name.starts_with("model.embed") || name.starts_with("model.layers.0.");
  });
  for (const FrozenParameter& each : late.frozen_parameters) {
    CHECK(each.forward);
    CHECK(!each.backward);
  }
}

TEST_CASE("something has to be trained", "[model][freeze]") {
  const Workload all = small_llama();
  CHECK_THROWS_WITH(frozen_where(all, [](const std::string&) { return true; }),
                    Catch::Contains("nothing is trained"));
}
