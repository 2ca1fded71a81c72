#include "model/workload/workload.hpp"

#include <functional>

#include <catch2/catch.hpp>

using namespace ddpsim;

namespace {

Kernel copy(const std::string& name) {
  Kernel kernel;
  kernel.name = name;
  kernel.traffic = 8 * KiB;
  return kernel;
}

/// Two layers, "first" and "second", each with two backward kernels and two parameters; the second
/// layer's both wait for its kernel 1.
Workload first_and_second() {
  Workload workload;
  workload.name = "two layers";
  for (const char* name : {"first", "second"})
    workload.layers.push_back({name, {copy("forward")}, {copy("backward"), copy("weights")}});
  workload.parameters = {{"first.weight", {3, 4}, DType::fp32, 0, 1},
                         {"first.bias", {3}, DType::bf16, 0, 0},
                         {"second.weight", {5, 3}, DType::fp32, 1, 1},
                         {"second.bias", {5}, DType::fp32, 1, 1}};
  return workload;
}

}  // namespace

TEST_CASE("elements and bytes of a workload are those of its parameters", "[model][workload]") {
  const Workload workload = first_and_second();
  CHECK(workload.parameters[0].elements() == 12);
  CHECK(workload.parameters[1].size() == Bytes{6});  // 3 of 2 bytes
  CHECK(workload.elements() == 12 + 3 + 15 + 5);
  CHECK(workload.gradient_size() == Bytes{4 * 12 + 2 * 3 + 4 * 15 + 4 * 5});
}

TEST_CASE("a workload's number format is that of most of its multiplications",
          "[model][workload]") {
  Workload workload = first_and_second();
  CHECK(main_format(workload) == std::nullopt);  // nothing is multiplied
  const auto product = [](const Gemm& gemm, DType type) {
    Kernel kernel = copy("product");
    kernel.gemm = gemm;
    kernel.type = type;
    return kernel;
  };
  // 2 x 2 x 2 x 2 = 16 operations, and 2 x 4 x 2 x 2 = 32.
  workload.layers[0].forward.push_back(product({2, 2, 2}, DType::fp32));
  CHECK(main_format(workload) == DType::fp32);
  workload.layers[1].backward.push_back(product({4, 2, 2}, DType::bf16));
  CHECK(main_format(workload) == DType::bf16);
}

TEST_CASE("a parameter without extents is one number", "[model][workload]") {
  CHECK(Parameter{"scale", {}, DType::fp32}.elements() == 1);
}

TEST_CASE("gradients arrive last layer first, then by kernel, ties in reverse registration order",
          "[model][workload]") {
  // Layer 1: both after kernel 1, so bias (3) before weight (2). Layer 0: kernel 0 (1), kernel 1
  // (0).
  CHECK(arrival_order(first_and_second()) == std::vector<int>{3, 2, 1, 0});

  Workload other = first_and_second();
  other.parameters[0].ready_after = 0;
  other.parameters[1].ready_after = 1;
  CHECK(arrival_order(other) == std::vector<int>{3, 2, 0, 1});
}

TEST_CASE("an arrival order that is given stands", "[model][workload]") {
  Workload workload = first_and_second();
  workload.arrival = {1, 0, 3, 2};
  CHECK(arrival_order(workload) == std::vector<int>{1, 0, 3, 2});
  CHECK_NOTHROW(check(workload));
}

TEST_CASE("a sound workload passes the check", "[model][workload]") {
  CHECK_NOTHROW(check(first_and_second()));
}

TEST_CASE("the check names what is wrong with a workload", "[model][workload]") {
  const auto complains = [](const std::function<void(Workload&)>& spoil, const std::string& about) {
    Workload workload = first_and_second();
    spoil(workload);
    CHECK_THROWS_WITH(check(workload), Catch::Contains("two layers") && Catch::Contains(about));
  };
  complains([](Workload& w) { w.parameters.clear(); }, "no parameters");
  complains([](Workload& w) { w.parameters[3].name = "first.bias"; }, "first.bias");
  complains([](Workload& w) { w.parameters[2].shape = {5, 0}; }, "second.weight");
  complains([](Workload& w) { w.parameters[2].shape = {-5, -3}; }, "second.weight");
  // 2^25 x 2^25 elements: more than the 2^48 any memory holds.
  complains([](Workload& w) { w.parameters[2].shape = {1 << 25, 1 << 25}; }, "second.weight");
  complains([](Workload& w) { w.parameters[0].layer = 2; }, "first.weight");
  complains([](Workload& w) { w.parameters[0].layer = -1; }, "first.weight");
  complains([](Workload& w) { w.parameters[0].ready_after = 2; }, "first.weight");
  complains([](Workload& w) { w.parameters[0].ready_after = -1; }, "first.weight");
  complains([](Workload& w) { w.layers[1].forward[0].launches = 0; }, "forward of layer second");
  complains([](Workload& w) { w.layers[0].backward[1].traffic = {-1}; }, "weights of layer first");
  complains([](Workload& w) { w.layers[0].backward[0].gemm = Gemm{4, 0, 4}; }, "backward of layer");
  complains([](Workload& w) { w.arrival = {0, 1, 2}; }, "arrival");
  complains([](Workload& w) { w.arrival = {0, 1, 2, 2}; }, "arrival");
  complains([](Workload& w) { w.arrival = {0, 1, 2, 4}; }, "arrival");
}
