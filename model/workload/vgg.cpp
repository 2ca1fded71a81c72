#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/convnet.hpp"
#include "model/workload/picture_modules.hpp"

namespace ddpsim {

Workload vgg_workload(const VggShape& shape, const WorkloadSize& size) {
  if (shape.channels.empty() || shape.channels.front() == 0)
    throw std::invalid_argument("channels: a VGG begins with a convolution");
  for (const int channels : shape.channels)
    if (channels != 0) require_positive(channels, "channels");
  require_positive(shape.classes, "classes");
  check_pictures(size, *std::max_element(shape.channels.begin(), shape.channels.end()));

  const PictureModules x(size);
  Pictures pictures{size.batch, 3, size.image, size.image};
  Workload workload;
  workload.source = "torchvision VGG on PyTorch with cuDNN, without dropout";

  // torchvision numbers the modules of one long list: a convolution and its ReLU are two, a pool is
  // one.
  int module = 0;
  int stage = 0;
  Modules modules;
  for (const int channels : shape.channels) {
    if (channels == 0) {
      modules.push_back(x.max_pool(fmt::format("features.{}", module++), pictures, {2, 2, 0}));
      append_layer(workload, fmt::format("stage{}", stage++), "", modules);
      modules.clear();
      continue;
    }
    modules.push_back(x.convolution(fmt::format("features.{}", module), pictures, channels,
                                    {3, 1, 1}, true,
                                    module == 0 ? Input::data : Input::activation));
    modules.push_back(x.relu(fmt::format("features.{}", module + 1), pictures.elements()));
    module += 2;
  }
  if (!modules.empty()) append_layer(workload, fmt::format("stage{}", stage), "", modules);

  constexpr std::int64_t hidden = 4096;
  modules = {x.average_pool("avgpool", pictures, 7)};
  const std::int64_t features = pictures.elements() / size.batch;
  modules.push_back(x.linear("classifier.0", size.batch, features, hidden, Operand::computed));
  modules.push_back(x.relu("classifier.1", size.batch * hidden));
  modules.push_back(x.linear("classifier.3", size.batch, hidden, hidden, Operand::kept));
  modules.push_back(x.relu("classifier.4", size.batch * hidden));
  modules.push_back(x.linear("classifier.6", size.batch, hidden, shape.classes, Operand::kept));
  modules.push_back(x.cross_entropy("loss", size.batch, shape.classes));
  append_layer(workload, "head", "", modules);
  return workload;
}

}  // namespace ddpsim
