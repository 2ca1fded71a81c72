// SSD finds objects in one pass: VGG-16 without its classifier, four pairs of convolutions that
// make its pictures ever smaller, and over each of six sizes two convolutions that tell, of boxes
// around every place, the class and the correction.
// Source: Liu et al., arXiv 1512.02325; torchvision.models.detection.ssd300_vgg16.

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/workload/detection_modules.hpp"
#include "model/workload/detector.hpp"

namespace ddpsim {
namespace {

using namespace eager;
constexpr std::int64_t side = 300;                             // torchvision resizes every picture
constexpr int vgg_stages = 5;                                  // of VGG-16, between its pools
constexpr std::array<int, 6> anchor_counts{4, 6, 6, 6, 4, 4};  // boxes around a place of each size

/// The number of every channel's vector at a place becomes a share of its length, times a factor
/// that is trained.
Module rescaled(const PictureModules& x, const Pictures& pictures) {
  const ModuleMaker& make = x.picture_maker();
  const std::int64_t elements = pictures.elements(), lengths = elements / pictures.channels;
  const EagerKernel over_channels = strided(reduced(1, lengths, pictures.channels).passes);
  Module module;
  module.forward = {
      make.eager("scale_weight.normalize", {{elements, {reduced(1, lengths, pictures.channels)}},
                                            {lengths, {2}},
                                            {elements, {strided(3), strided(2)}}})};
  module.backward = {
      make.eager("scale_weight.grad",
                 {{elements, {strided(2), again(3)}},
                  {elements, {again(reduced(1, pictures.channels, lengths / pictures.batch))}}},
                 Pass::backward),
      make.eager("normalize.grad",
                 {{elements, {strided(2), again(strided(2)), again(3), over_channels}},
                  {lengths, {3, 3}},
                  {elements, {strided(2), again(strided(3)), again(3)}}},
                 Pass::backward)};
  module.parameters = {x.maker().parameter("scale_weight", {pictures.channels}, 0)};
  module.kept = make.computed(2 * elements);
  module.forward_working = make.computed(elements);
  module.backward_working = make.computed(3 * elements);
  module.views = 3;
  return module;
}

/// Convolutions with ReLU, numbered as torch.nn.Sequential numbers them: two each.
void add_convolution(Modules& modules, const PictureModules& x, const std::string& prefix,
                     int number, Pictures& pictures, std::int64_t channels, const Window& window,
                     Input input = Input::activation) {
  modules.push_back(
      x.convolution(fmt::format("{}{}", prefix, number), pictures, channels, window, true, input));
  modules.push_back(x.relu(fmt::format("{}{}", prefix, number + 1), pictures.elements()));
}

/// VGG-16 up to the last convolution before its fourth pool.
void append_features(Workload& workload, const PictureModules& x, Pictures& pictures,
                     int trained_stages) {
  constexpr std::array<std::array<int, 2>, 4> runs{{{64, 2}, {128, 2}, {256, 3}, {512, 3}}};
  const int frozen_stages = vgg_stages - trained_stages;
  int number = 0;
  for (int stage = 0; stage < 4; ++stage) {
    const auto [channels, convolutions] = runs[static_cast<std::size_t>(stage)];
    const Input first = stage == 0               ? Input::data
                        : stage <= frozen_stages ? Input::frozen
                                                 : Input::activation;
    Modules modules;
    if (stage > 0)
      modules.push_back(x.max_pool(fmt::format("features.{}", number++), pictures,
                                   {.size = 2, .stride = 2, .rounds_up = stage == 3}));
    for (int i = 0; i < convolutions; ++i, number += 2)
      add_convolution(modules, x, "features.", number, pictures, channels, {3, 1, 1},
                      i == 0 ? first : Input::activation);
    if (stage > 0 && stage <= frozen_stages)  // of a pool before the first trained convolution
      modules.front() = frozen(workload, modules.front());
    if (stage < frozen_stages)
      for (Module& module : modules) module = frozen(workload, module);
    append_layer(workload, fmt::format("stage{}", stage), "backbone.", modules);
  }
}

/// The fifth stage with what stands for VGG's classifier: a window with holes, and single pixels.
Modules fifth_stage(const PictureModules& x, Pictures& pictures) {
  Modules modules{x.max_pool("0.0", pictures, {2, 2})};
  for (int i = 0; i < 3; ++i)
    add_convolution(modules, x, "0.", 2 * i + 1, pictures, 512, {3, 1, 1});
  modules.push_back(x.max_pool("0.7.0", pictures, {3, 1, 1}));
  add_convolution(modules, x, "0.7.", 1, pictures, 1024, {3, 1, 6, 6});
  add_convolution(modules, x, "0.7.", 3, pictures, 1024, {});
  return modules;
}

void check(const SsdShape& shape, const WorkloadSize& size) {
  require_positive(size.batch, "batch");
  require_positive(shape.classes, "classes");
  if (shape.trained_stages < 2 || shape.trained_stages > vgg_stages)
    throw std::invalid_argument(fmt::format(
        "trained_stages: an SSD trains 2 to 5 of VGG-16's stages, got {}", shape.trained_stages));
  require_countable("an activation", {size.batch, side, side, 64});
  require_countable("predictions", {size.batch, 38, 38, 6, shape.classes});
}

}  // namespace

Workload ssd_workload(const SsdShape& shape, const WorkloadSize& size) {
  check(shape, size);
  const PictureModules x(size);
  Pictures pictures{size.batch, 3, side, side};
  Workload workload;
  workload.source = "torchvision SSD300 on PyTorch with cuDNN; no matching, sorting, loss of boxes";
  append_features(workload, x, pictures, shape.trained_stages);

  std::vector<Pictures> sizes{pictures};
  append_layer(workload, "scale", "backbone.", {x.fork("fork", pictures), rescaled(x, pictures)});
  std::rotate(workload.parameters.begin(), workload.parameters.end() - 1,
              workload.parameters.end());  // registered first
  struct Pair {
    std::int64_t inner, outer;
    Window window;
  };
  constexpr std::array<Pair, 4> pairs{
      {{256, 512, {3, 2, 1}}, {128, 256, {3, 2, 1}}, {128, 256, {3, 1, 0}}, {128, 256, {3, 1, 0}}}};
  append_layer(workload, "extra.0", "backbone.extra.", fifth_stage(x, pictures));
  sizes.push_back(pictures);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string name = fmt::format("{}.", i + 1);
    Modules modules{x.fork(name + "fork", pictures)};
    add_convolution(modules, x, name, 0, pictures, pairs[i].inner, {});
    add_convolution(modules, x, name, 2, pictures, pairs[i].outer, pairs[i].window);
    append_layer(workload, "extra." + std::to_string(i + 1), "backbone.extra.", modules);
    sizes.push_back(pictures);
  }

  // All corrections first; backward all classes first. The head of classes is registered first.
  std::int64_t boxes = 0;
  const auto heads = std::ssize(workload.parameters);
  auto classes = heads;
  for (const auto& [head, columns] :
       {std::pair{"regression_head", std::int64_t{4}}, {"classification_head", shape.classes}}) {
    classes = std::ssize(workload.parameters);
    Modules modules;
    std::vector<Pictures> predictions;
    boxes = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Pictures level = sizes[i];
      if (classes > heads) modules.push_back(x.fork(fmt::format("fork.{}", i), level));
      modules.push_back(x.convolution(fmt::format("module_list.{}", i), level,
                                      std::int64_t{anchor_counts[i]} * columns, {3, 1, 1}, true));
      boxes += anchor_counts[i] * level.places();
      predictions.push_back(level);
    }
    modules.push_back(joined_predictions(x, "joined", predictions));
    append_layer(workload, head, fmt::format("head.{}.", head), modules);
  }
  std::rotate(workload.parameters.begin() + heads, workload.parameters.begin() + classes,
              workload.parameters.end());
  append_layer(workload, "loss", "", {x.cross_entropy("loss", size.batch * boxes, shape.classes)});
  return workload;
}

}  // namespace ddpsim
