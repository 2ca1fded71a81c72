#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/convnet.hpp"
#include "model/workload/picture_modules.hpp"

namespace ddpsim {
namespace {

/// A stage of EfficientNet-B0, which the others scale.
struct MobileStage {
  int expansion, window, stride, channels, blocks;
};
constexpr std::array<MobileStage, 7> mobile_stages{{{1, 3, 1, 16, 1},
                                                    {6, 3, 2, 24, 2},
                                                    {6, 5, 2, 40, 2},
                                                    {6, 3, 2, 80, 3},
                                                    {6, 5, 1, 112, 3},
                                                    {6, 5, 2, 192, 4},
                                                    {6, 3, 1, 320, 1}}};

/// Channels are multiples of eight, and no more than a tenth fewer than asked for.
std::int64_t scaled_channels(double channels) {
  const std::int64_t nearest =
      std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

/// A convolution of odd window with batch norm and, unless it ends a block, SiLU.
void add_convolution(Modules& modules, const PictureModules& x, const std::string& name,
                     Pictures& pictures, std::int64_t channels, const MobileStage& stage,
                     std::int64_t groups, bool activated, Input input = Input::activation) {
  const Window window{stage.window, stage.stride, (stage.window - 1) / 2};
  modules.push_back(
      with_calls(x.convolution(name + ".0", pictures, channels, window, false, input, groups), 1));
  modules.push_back(x.batch_norm(name + ".1", pictures));
  if (activated) modules.push_back(x.silu(name + ".2", pictures.elements()));
}

/// An inverted bottleneck: 1x1 to more channels (unless there are none to add), a depthwise window,
/// squeeze-and-excitation by a quarter of the channels that came in, 1x1 back. Where the shape
/// stays, whole pictures are dropped at random and what came in is added.
Modules inverted_bottleneck(const PictureModules& x, Pictures& pictures, const MobileStage& stage,
                            bool drops) {
  const Pictures before = pictures;
  const std::int64_t expanded = before.channels * stage.expansion;
  const bool adds = stage.stride == 1 && before.channels == stage.channels;
  Modules block;
  block.push_back(with_calls(adds ? x.fork("shortcut", pictures) : Module{}, 2));
  int part = 0;
  const auto name = [&] { return fmt::format("block.{}", part++); };
  if (expanded != before.channels)
    add_convolution(block, x, name(), pictures, expanded, {1, 1, 1, 0, 0}, 1, true);
  add_convolution(block, x, name(), pictures, expanded, stage, expanded, true);

  const std::string excitation = name();
  Pictures mean = pictures;
  block.push_back(x.fork(excitation + ".fork", pictures));
  block.push_back(with_calls(x.average_pool(excitation + ".avgpool", mean, 1), 1));
  const std::int64_t squeezed = std::max<std::int64_t>(1, before.channels / 4);
  block.push_back(x.convolution(excitation + ".fc1", mean, squeezed, {}, true));
  block.push_back(x.silu(excitation + ".activation", mean.elements()));
  block.push_back(x.convolution(excitation + ".fc2", mean, expanded, {}, true));
  block.push_back(x.sigmoid(excitation + ".scale_activation", mean.elements()));
  block.push_back(x.scale(excitation + ".scale", pictures));

  add_convolution(block, x, name(), pictures, stage.channels, {1, 1, 1, 0, 0}, 1, false);
  if (adds && drops) block.push_back(x.drop_pictures("stochastic_depth", pictures));
  if (adds) block.push_back(x.add("add", pictures));
  x.keep_result(block.back(), pictures);
  return block;
}

}  // namespace

Workload efficientnet_workload(const EfficientNetShape& shape, const WorkloadSize& size) {
  require_positive(shape.classes, "classes");
  if (!(shape.width > 0 && shape.width <= 100)) throw std::invalid_argument("width: 0 to 100");
  if (!(shape.depth > 0 && shape.depth <= 100)) throw std::invalid_argument("depth: 0 to 100");
  const std::int64_t widest = scaled_channels(shape.width * mobile_stages.back().channels);
  check_pictures(size, 6 * widest);

  const PictureModules x(size);
  Pictures pictures{size.batch, 3, size.image, size.image};
  Workload workload;
  workload.source = "torchvision EfficientNet on PyTorch with cuDNN, without dropout";

  Modules stem;
  add_convolution(stem, x, "0", pictures, scaled_channels(shape.width * 32), {1, 3, 2, 0, 0}, 1,
                  true, Input::data);
  append_layer(workload, "features.0", "features.0.", stem);
  bool drops = false;  // torchvision drops nothing in the first block
  for (std::size_t number = 0; number < mobile_stages.size(); ++number) {
    MobileStage stage = mobile_stages[number];
    stage.channels = static_cast<int>(scaled_channels(shape.width * stage.channels));
    const int blocks = static_cast<int>(std::ceil(stage.blocks * shape.depth));
    for (int i = 0; i < blocks; ++i) {
      const std::string name = fmt::format("features.{}.{}", number + 1, i);
      append_layer(workload, name, name + ".", inverted_bottleneck(x, pictures, stage, drops));
      stage.stride = 1;
      drops = true;
    }
  }

  Modules head;
  add_convolution(head, x, "features.8", pictures, 4 * pictures.channels, {1, 1, 1, 0, 0}, 1, true);
  head.push_back(x.average_pool("avgpool", pictures, 1));
  head.push_back(
      x.linear("classifier.1", size.batch, pictures.channels, shape.classes, Operand::computed));
  head.push_back(x.cross_entropy("loss", size.batch, shape.classes));
  append_layer(workload, "head", "", head);
  return workload;
}

}  // namespace ddpsim
