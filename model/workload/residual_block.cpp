#include "model/workload/residual_block.hpp"

#include <fmt/format.h>

namespace ddpsim {

std::vector<Module> residual_block(const PictureModules& x, Pictures& pictures,
                                   const ResNetShape& shape, std::int64_t planes,
                                   std::int64_t stride, const BlockTraining& training) {
  const bool bottleneck = shape.bottleneck;
  const std::int64_t channels = bottleneck ? 4 * planes : planes;
  const std::int64_t width = planes * shape.width_per_group / 64 * shape.groups;
  const Window one{1, 1, 0}, three{3, 1, 1}, striding{3, stride, 1}, projecting{1, stride, 0};
  Pictures shortcut = pictures;
  const bool to_input = training.input == Input::activation;
  std::vector<Module> block{with_calls(to_input ? x.fork("shortcut", shortcut) : Module{}, 1)};
  const auto norm = [&](const std::string& name, const Pictures& of) {
    block.push_back(training.frozen_norms ? x.frozen_norm(name, of) : x.batch_norm(name, of));
  };
  const auto convolve = [&](int number, std::int64_t out, const Window& window,
                            std::int64_t groups = 1) {
    block.push_back(x.convolution(fmt::format("conv{}", number), pictures, out, window, false,
                                  number == 1 ? training.input : Input::activation, groups));
    norm(fmt::format("bn{}", number), pictures);
  };
  const auto relu = [&](int number) {
    block.push_back(x.relu(fmt::format("relu{}", number), pictures.elements()));
  };
  if (bottleneck) {
    convolve(1, width, one);
    relu(1);
    convolve(2, width, striding, shape.groups);
    relu(2);
    convolve(3, channels, one);
  } else {
    convolve(1, channels, striding);
    relu(1);
    convolve(2, channels, three);
  }
  if (stride != 1 || shortcut.channels != channels) {
    block.push_back(with_calls(
        x.convolution("downsample.0", shortcut, channels, projecting, false, training.input), 1));
    if (!to_input) block.back().kept = Bytes{};  // conv1 keeps what both read
    norm("downsample.1", shortcut);
  }
  block.push_back(x.add("add", pictures));
  relu(bottleneck ? 3 : 2);
  return block;
}

}  // namespace ddpsim
