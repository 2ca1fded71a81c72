#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/convnet.hpp"
#include "model/workload/picture_modules.hpp"
#include "model/workload/residual_block.hpp"

namespace ddpsim {

Workload resnet_workload(const ResNetShape& shape, const WorkloadSize& size) {
  if (shape.blocks.size() != 4)
    throw std::invalid_argument(
        fmt::format("blocks: a ResNet has four stages, got {}", shape.blocks.size()));
  for (const int blocks : shape.blocks) require_positive(blocks, "blocks");
  require_positive(shape.classes, "classes");
  require_positive(shape.groups, "groups");
  require_positive(shape.width_per_group, "width_per_group");
  if (!shape.bottleneck && (shape.groups != 1 || shape.width_per_group != 64))
    throw std::invalid_argument("only bottleneck blocks have groups or another width");
  if (shape.width_per_group > 1 << 20 || shape.groups > 1 << 20)
    throw std::invalid_argument("groups: more channels than any memory holds");
  const std::int64_t widest = std::int64_t{64 << 3} * shape.width_per_group / 64 * shape.groups;
  require_countable("a weight", {widest, widest, 9});
  check_pictures(size, std::max(widest, std::int64_t{4} * (64 << 3)));

  const PictureModules x(size);
  Pictures pictures{size.batch, 3, size.image, size.image};
  Workload workload;
  workload.source = "torchvision ResNet on PyTorch with cuDNN";

  Modules stem{x.convolution("conv1", pictures, 64, {7, 2, 3}, false, Input::data)};
  stem.push_back(x.batch_norm("bn1", pictures));
  stem.push_back(x.relu("relu", pictures.elements()));
  stem.push_back(x.max_pool("maxpool", pictures, {3, 2, 1}));
  append_layer(workload, "stem", "", stem);

  for (std::size_t stage = 0; stage < shape.blocks.size(); ++stage) {
    for (int i = 0; i < shape.blocks[stage]; ++i) {
      const std::int64_t planes = std::int64_t{64} << stage;
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      const std::string name = fmt::format("layer{}.{}", stage + 1, i);
      append_layer(workload, name, name + ".", residual_block(x, pictures, shape, planes, stride));
    }
  }

  Modules head{x.average_pool("avgpool", pictures, 1)};
  head.push_back(x.linear("fc", size.batch, pictures.channels, shape.classes, Operand::computed));
  head.push_back(x.cross_entropy("loss", size.batch, shape.classes));
  append_layer(workload, "head", "", head);
  return workload;
}

}  // namespace ddpsim
