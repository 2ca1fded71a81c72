#include <algorithm>
#include <string>

#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"

using namespace ddpsim;

namespace {

Workload built(const Architecture& architecture, int batch = 1) {
  WorkloadSize size;
  size.batch = batch;
  return build_workload("net", architecture, size);
}

/// Products of the forward pass, each a multiplication and an addition, in thousands of millions.
double forward_giga(const Workload& workload) {
  double products = 0;
  for (const Layer& layer : workload.layers)
    for (const Kernel& kernel : layer.forward)
      if (kernel.gemm) products += kernel.gemm->flops() / 2;
  return products / 1e9;
}

}  // namespace

TEST_CASE("an SSD300 has the parameters of torchvision's, trained or frozen", "[model][detector]") {
  const Workload whole = built(SsdShape{.trained_stages = 5});
  CHECK(whole.parameters.size() == 71);
  CHECK(whole.elements() == 35'641'826);  // ssd300_vgg16's num_params
  CHECK(whole.frozen == Bytes{});
  // From a trained VGG-16 torchvision freezes its first stage: two convolutions with biases.
  const Workload usual = built(SsdShape{});
  const std::int64_t frozen = 64 * 3 * 9 + 64 + 64 * 64 * 9 + 64;
  CHECK(usual.parameters.size() == 67);
  CHECK(usual.elements() == 35'641'826 - frozen);
  CHECK(usual.frozen == Bytes{4 * frozen});
  CHECK(usual.parameters.front().name == "backbone.scale_weight");
  CHECK(usual.parameters.back().name == "head.regression_head.module_list.5.bias");
}

TEST_CASE("an SSD300 multiplies as often as torchvision counts", "[model][detector]") {
  // 34.858 thousand million for a picture (the weights' own record).
  CHECK(forward_giga(built(SsdShape{})) == Approx(34.858).epsilon(0.001));
  CHECK(forward_giga(built(SsdShape{}, 4)) == Approx(4 * 34.858).epsilon(0.001));
}

TEST_CASE("what is frozen in a detector has no backward pass", "[model][detector]") {
  const Workload ssd = built(SsdShape{.trained_stages = 3});
  CHECK(ssd.layers[0].backward.empty());
  CHECK(ssd.layers[1].backward.empty());
  // The first trained convolution makes no gradient of its input: its pool has nothing to do.
  for (const Kernel& kernel : ssd.layers[2].backward) {
    CHECK(kernel.name.find("features.9.grad") == std::string::npos);
    CHECK(kernel.name.find("features.10.grad_data") == std::string::npos);
  }
  const Workload mask = built(MaskRcnnShape{});
  for (std::size_t layer = 0; layer < 4; ++layer) CHECK(mask.layers[layer].backward.empty());
  CHECK_FALSE(mask.layers[4].backward.empty());
}

TEST_CASE("a Mask R-CNN has the parameters of torchvision's, trained or frozen",
          "[model][detector]") {
  const Workload whole = built(MaskRcnnShape{.trained_stages = 5});
  CHECK(whole.parameters.size() == 95);
  CHECK(whole.elements() == 44'401'393);  // maskrcnn_resnet50_fpn's num_params
  // The stem, and the first three bottlenecks with the projection of the first one.
  const std::int64_t stem = 64 * 3 * 49, narrow = 64 * 64 * 9 + 64 * 256;
  const std::int64_t frozen = stem + (64 * 64 + narrow + 64 * 256) + 2 * (256 * 64 + narrow);
  const Workload usual = built(MaskRcnnShape{});
  CHECK(usual.parameters.size() == 84);
  CHECK(usual.elements() == 44'401'393 - frozen);
  CHECK(usual.frozen == Bytes{4 * frozen});
  // Norms that are not trained are four buffers each, which DDP broadcasts: 53 norms of 26560
  // channels.
  REQUIRE(usual.buffers.size() == 1);
  CHECK(usual.buffers[0].tensors == 4 * 53);
  CHECK(usual.buffers[0].size == Bytes{4 * 4 * 26'560});
}

TEST_CASE("the heads of a Mask R-CNN see the boxes that are sampled", "[model][detector]") {
  const auto flops_of = [](const MaskRcnnShape& shape) { return forward_giga(built(shape)); };
  MaskRcnnShape shape;
  shape.boxes = 256;
  shape.masks = 64;
  const double less = flops_of(shape);
  // A box: 12544 x 1024, 1024 x 1024 and five numbers of each class. An outline: four windows over
  // 196 places, a square of each place, and a number for each class at 784.
  const double box = 12'544.0 * 1024 + 1024.0 * 1024 + 1024.0 * 5 * 91;
  const double outline = 4 * 196 * 256.0 * 256 * 9 + 196 * 256.0 * 256 * 4 + 784 * 256.0 * 91;
  CHECK(flops_of(MaskRcnnShape{}) - less == Approx((256 * box + 64 * outline) / 1e9));
}

TEST_CASE("the three convolutions of proposals are complete after their last use",
          "[model][detector]") {
  const Workload workload = built(MaskRcnnShape{});
  const auto layer = std::find_if(workload.layers.begin(), workload.layers.end(),
                                  [](const Layer& each) { return each.name == "rpn"; });
  REQUIRE(layer != workload.layers.end());
  const auto last = static_cast<int>(layer->backward.size()) - 1;
  int found = 0;
  for (const Parameter& parameter : workload.parameters) {
    if (parameter.name.rfind("rpn.head.conv", 0) != 0) continue;
    ++found;
    // Behind the first level's gradients, which backward comes to last: the weight's is added to
    // those of other levels, then the bias's.
    CHECK(parameter.ready_after == (parameter.name.ends_with("bias") ? last : last - 1));
  }
  CHECK(found == 2);
}

TEST_CASE("a detector that cannot be built is refused by name", "[model][detector]") {
  const auto refuses = [](const Architecture& architecture, const std::string& about) {
    CHECK_THROWS_WITH(built(architecture), Catch::Contains("net: ") && Catch::Contains(about));
  };
  refuses(SsdShape{.trained_stages = 1}, "an SSD trains 2 to 5 of VGG-16's stages, got 1");
  refuses(SsdShape{.classes = 0}, "classes must be positive");
  refuses(MaskRcnnShape{.picture_width = 1066}, "multiples of 32 from 64 on, got 1066");
  refuses(MaskRcnnShape{.boxes = 100}, "128 are more than the 100 boxes");
  refuses(MaskRcnnShape{.trained_stages = 6}, "ResNet-50 has 5, got 6");
}
