#include <catch2/catch.hpp>

#include "scenarios/reader/workload/description.hpp"

using namespace ddpsim;

namespace {

/// Two layers of three small kernels a pass, which become one kernel unless something is between.
WorkloadDescription described(std::vector<DescribedCollective> collectives) {
  WorkloadDescription description;
  DescribedKernel kernel;
  kernel.op = "aten.add";
  kernel.read = kernel.written = 1000;
  description.kernels = {kernel};
  for (const char* name : {"first", "second"}) {
    DescribedLayer& layer = description.layers.emplace_back();
    layer.name = name;
    layer.forward = layer.backward = {{0, 3}};
    DescribedParameter& parameter = description.parameters.emplace_back();
    parameter.name = std::string(name) + ".weight";
    parameter.shape = {10};
    parameter.layer = static_cast<int>(description.layers.size()) - 1;
    parameter.after = 2;
  }
  description.collectives = std::move(collectives);
  return description;
}

Workload built(const WorkloadDescription& description) {
  Device device;
  device.memory_bandwidth = gigabytes_per_second(1000);
  device.peak.fill(teraflops_per_second(10));
  return workload_of(description, "net", std::nullopt, device);
}

}  // namespace

TEST_CASE("a described collective cuts the kernels where it stands",
          "[scenarios][described_collectives]") {
  const Workload silent = built(described({}));
  CHECK(silent.layers[1].forward.size() == 1);
  CHECK(silent.collectives.empty());
  const Workload sends =
      built(described({{"all_gather", StepPass::forward, "norm", 516, 1, 1, 0},
                       {"all_reduce", StepPass::backward, "norm", 512, 2, 0, 1}}));
  REQUIRE(sends.layers[1].forward.size() == 2);
  CHECK(sends.layers[1].forward[0].traffic == Bytes{2000});
  CHECK(sends.layers[1].forward[1].traffic == Bytes{4000});
  REQUIRE(sends.collectives.size() == 3);
  CHECK(sends.collectives[0].kind == OwnCollective::Kind::all_gather);
  CHECK(sends.collectives[0].size == Bytes{516});
  CHECK_FALSE(sends.collectives[0].backward);
  CHECK(sends.collectives[0].layer == 1);
  CHECK(sends.collectives[0].after == 0);
  // Twice behind the second entry of three: the first of two kernels.
  for (int i : {1, 2}) {
    const OwnCollective& each = sends.collectives[static_cast<std::size_t>(i)];
    CHECK(each.kind == OwnCollective::Kind::all_reduce);
    CHECK(each.backward);
    CHECK(each.layer == 0);
    CHECK(each.after == 0);
  }
  REQUIRE(sends.layers[0].backward.size() == 2);
  CHECK(sends.layers[0].backward[0].traffic == Bytes{4000});
}

TEST_CASE("a collective without a place or a law is not priced",
          "[scenarios][described_collectives]") {
  DescribedCollective sent{"all_reduce", StepPass::forward, "", 512, 1, 0, 0};
  CHECK(is_priced(sent));
  sent.op = "all_to_all";
  CHECK_FALSE(is_priced(sent));
  CHECK(built(described({sent})).collectives.empty());
  sent.op = "all_reduce";
  sent.layer = sent.after = std::nullopt;  // as earlier releases wrote it
  CHECK_FALSE(is_priced(sent));
  CHECK(built(described({sent})).collectives.empty());
}
