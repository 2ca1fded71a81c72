#include "model/workload/convnet.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/convolution.hpp"
#include "model/workload/layer_builder.hpp"

namespace ddpsim {
namespace {

using namespace eager;
using Modules = std::vector<Module>;

/// What flows through the network: a batch of square pictures.
struct Pictures {
  std::int64_t batch = 0, channels = 0, side = 0;

  std::int64_t elements() const { return batch * channels * side * side; }
};

struct Window {
  std::int64_t size = 1, stride = 1, padding = 0;
};

std::int64_t side_after(std::int64_t side, const Window& window) {
  const std::int64_t span = side + 2 * window.padding - window.size;
  if (span < 0)
    throw std::invalid_argument("image: too small, nothing is left of it after pooling");
  return span / window.stride + 1;
}

/// The modules of convolutional networks; those that change the pictures' shape write it back.
class PictureModules {
 public:
  explicit PictureModules(const WorkloadSize& size)
      : make_(size.dtype, size.compute),
        run_(make_.casts() ? size.compute : size.dtype, size.compute),
        last_(size.channels_last) {}

  /// Of each group of channels an implicit matrix product: pixels x output channels, over the
  /// window; of a window of one pixel a product for each picture. The windows overlap in the input
  /// and are never written out, so that input, weight and output are moved once each.
  Module convolution(const std::string& name, Pictures& pictures, std::int64_t channels,
                     const Window& window, bool biased = false, Input input = Input::activation,
                     std::int64_t groups = 1) const {
    const Pictures before = pictures;
    pictures = {before.batch, channels, side_after(before.side, window)};
    const std::int64_t pixels = pictures.batch * pictures.side * pictures.side;
    const std::int64_t window_area = window.size * window.size;
    const std::int64_t taps = before.channels / groups * window_area;  // of an output
    const std::int64_t outputs = channels / groups;                    // of a group
    const std::int64_t moved = before.elements() + channels * taps + pictures.elements();

    const ConvolutionCall call{.shape = {.pictures = before.batch,
                                         .channels = before.channels,
                                         .pixels = before.side * before.side,
                                         .outputs = channels,
                                         .places = pictures.side * pictures.side,
                                         .window = window_area,
                                         .groups = groups,
                                         .channels_last = last_},
                               .type = make_.product_type(),
                               .strided = window.stride > 1,
                               .biased = biased};
    const bool to_input = input == Input::activation;
    ConvolutionGradients gradients = gradient_parts(call, to_input);
    Module module;
    std::vector<Kernel>& backward = module.backward;
    const auto run = [&](std::vector<Kernel>& pass, const std::string& kernel, const Gemm& shape,
                         std::vector<KernelPart> parts) {
      pass.push_back(run_.gemm(kernel, shape, moved));
      pass.back().parts = std::move(parts);
    };
    const std::int64_t products = call.is_plain() ? pictures.batch : groups;
    const std::int64_t of_each = call.is_plain() ? pixels / pictures.batch : pixels;
    if (make_.casts())  // autocast copies the weight, and the network's own pictures
      module.forward.push_back(make_.eager(
          name + ".cast",
          {make_.to_computed(to_input ? 0 : before.elements()), make_.to_computed(channels * taps),
           make_.to_computed(biased ? channels : 0)}));
    run(module.forward, name, {of_each, outputs, taps, products}, forward_parts(call));
    // The data gradient gathers from every output channel; under a stride from fewer places each,
    // for more pixels: the product of the extents is the same.
    if (to_input)
      run(backward, name + ".grad_data",
          {of_each, before.channels / groups, outputs * window_area, products},
          std::move(gradients.input));
    run(backward, name + ".grad_weight", {outputs, taps, of_each, products},
        std::move(gradients.weight));
    if (biased) {
      backward.push_back(run_.eager(name + ".grad_bias", {{pictures.elements(), {1}}}));
      backward.back().parts = std::move(gradients.bias);
    }
    if (make_.casts())  // backward the weight's gradient is copied
      backward.push_back(
          make_.eager(name + ".grad_cast",
                      {make_.to_stored(channels * taps), make_.to_stored(biased ? channels : 0)},
                      Pass::backward));
    module.calls = 1;

    const int last = static_cast<int>(backward.size()) - 1;
    const std::vector<std::int64_t> shape{channels, before.channels / groups, window.size,
                                          window.size};
    module.parameters = {make_.parameter(name + ".weight", shape, last)};
    if (biased) module.parameters.push_back(make_.parameter(name + ".bias", {channels}, last));
    // What it reads, the module before keeps: a ReLU or a pool its result.
    if (input == Input::data) module.kept = make_.computed(before.elements());
    if (make_.casts()) module.kept += make_.computed(channels * taps);
    module.forward_working = make_.computed(pictures.elements());
    module.backward_working =
        make_.computed(pictures.elements() + (to_input ? before.elements() : 0));
    return module;
  }

  /// Both ways the statistics take a pass of their own before the result can be written, in one
  /// kernel of cuDNN's that has a block of threads for each channel.
  Module batch_norm(const std::string& name, const Pictures& pictures) const {
    const std::int64_t elements = pictures.elements();
    const DType type = make_.computed_type();
    const auto kernel = [&](double passes, PatternKind kind) {
      EagerKernel each(passes, kind, pictures.channels, elements / pictures.channels);
      each.pattern.inner = pictures.side * pictures.side;
      each.pattern.channels_last = last_;
      each.call = Call::batch_norm;
      return each;
    };
    Module module;
    // Of bf16, which cuDNN's kernels do not take, PyTorch's own: statistics, their running means,
    // the result; backward one kernel.
    const bool own = type == DType::bf16;
    const std::vector<EagerKernel> forward =
        own ? std::vector{only_cpu(3), only_gpu(kernel(1, PatternKind::batch_norm_statistics)),
                          only_gpu(follows(0)),
                          only_gpu(follows(kernel(2, PatternKind::batch_norm_transform)))}
            : std::vector{kernel(3, PatternKind::batch_norm)};
    // Forward also counts the batch: eight bytes, read and written.
    module.forward = {make_.eager(name + ".count", {{2, {2}}}),
                      make_.eager(name, {{elements, forward, type}})};
    // With channels last the blocks of PyTorch's own count each other, and sums come first.
    std::vector<EagerKernel> backward{
        eager::backward(kernel(5, own ? PatternKind::batch_norm_own : PatternKind::batch_norm))};
    if (own && last_)
      backward = {only_cpu(5),
                  only_gpu(eager::backward(kernel(2, PatternKind::batch_norm_statistics))),
                  only_gpu(eager::backward(follows(kernel(3, PatternKind::batch_norm_transform))))};
    module.backward = {make_.eager(name + ".grad", {{elements, backward, type}}, Pass::backward)};
    module.parameters = {make_.parameter(name + ".weight", {pictures.channels}),
                         make_.parameter(name + ".bias", {pictures.channels})};
    module.statistics = pictures.channels;
    module.calls = 1;
    // Its input, mean and deviation of every channel.
    in_computed_format(module, elements, elements) += pictures.channels * Bytes{8};
    return module;
  }

  /// In place, as torchvision writes it: what it reads is gone, its result is kept.
  Module relu(const std::string& name, std::int64_t elements) const {
    Module module = run_.elementwise(name, {elements, {2}}, {elements, {3}});
    in_computed_format(module, elements, elements);
    module.calls = 1;
    return module;
  }

  Module add(const std::string& name, const Pictures& pictures) const {
    return run_.elementwise(name, {pictures.elements(), {3}}, {});
  }

  /// In place, as torchvision writes it: autograd copies what it reads first, and keeps the copy;
  /// its result is kept by what reads that.
  Module silu(const std::string& name, std::int64_t elements) const {
    Module module = run_.elementwise(name, {elements, {2, 2}}, {elements, {of(Call::gelu, 3)}});
    in_computed_format(module, elements, 2 * elements);
    module.calls = 1;
    return module;
  }

  Module sigmoid(const std::string& name, std::int64_t elements) const {
    Module module = run_.elementwise(name, {elements, {2}}, {elements, {3}});
    in_computed_format(module, elements, elements);
    module.calls = 1;
    return module;
  }

  /// Every channel times its own factor. Backward: both products, one of them summed over pixels.
  Module scale(const std::string& name, const Pictures& pictures) const {
    const std::int64_t rows = pictures.batch * pictures.channels;
    Module module = run_.elementwise(
        name, {pictures.elements(), {strided(2)}},
        {pictures.elements(),
         {strided(2), again(3), again(reduced(1, rows, pictures.side * pictures.side))}});
    in_computed_format(module, pictures.elements(), pictures.elements());
    return module;
  }

  /// Whole pictures dropped by a random mask of one number each. What it writes is read again.
  Module drop_pictures(const std::string& name, const Pictures& pictures) const {
    Module module =
        run_.elementwise(name, {pictures.elements(), {only_gpu(fill(0)), only_gpu(0), strided(2)}},
                         {pictures.elements(), {strided(2)}});
    module.calls = 1;
    return module;
  }

  /// Marks the module's result as kept, by a convolution that reads it.
  void keep_result(Module& module, const Pictures& pictures) const {
    module.kept += make_.computed(pictures.elements());
  }

  Module fork(const std::string& name, const Pictures& pictures) const {
    return run_.fork(name, pictures.elements());
  }

  /// Keeps for every output where its maximum was, in 8 bytes.
  Module max_pool(const std::string& name, Pictures& pictures, const Window& window) const {
    const std::int64_t before = pictures.elements();
    pictures.side = side_after(pictures.side, window);
    // One kernel each way, over both sizes; a GPU clears what gradients are added to before.
    EagerKernel pool(1, PatternKind::max_pool, pictures.elements(), window.size * window.size);
    pool.pattern.channels_last = last_;
    const double cleared =
        static_cast<double>(before) / static_cast<double>(before + pictures.elements());
    Module module = run_.elementwise(
        name, {before + pictures.elements(), {pool}},
        {before + pictures.elements(), {only_gpu(fill(cleared)), eager::backward(follows(pool))}});
    for (auto* pass : {&module.forward, &module.backward})
      pass->front().traffic += pictures.elements() * Bytes{8};
    in_computed_format(module, before, pictures.elements()) += pictures.elements() * Bytes{8};
    module.calls = 1;
    return module;
  }

  /// The mean of every picture's channels (forward reads, backward fills); or a grid of such means.
  Module average_pool(const std::string& name, Pictures& pictures, std::int64_t side) const {
    const std::int64_t before = pictures.elements();
    const std::int64_t window = pictures.side / side * (pictures.side / side);
    pictures.side = side;
    const std::int64_t elements = before + pictures.elements();
    // A single mean is a reduction, and backward a quotient; a grid has kernels of its own.
    const EagerKernel forward =
        side == 1 ? last_ ? sum_of_rows(1, window, pictures.elements())
                          : reduced(1, pictures.elements(), window)
                  : EagerKernel(1, PatternKind::pool, pictures.elements(), window);
    const EagerKernel backward =
        side == 1 ? strided(1)
                  : eager::backward({1, PatternKind::pool, pictures.elements(), window});
    Module module = run_.elementwise(name, {elements, {forward}}, {elements, {backward}});
    in_computed_format(module, before, 0);
    module.calls = 1;
    module.views = side == 1 ? 1 : 0;
    return module;
  }

  Module linear(const std::string& name, std::int64_t rows, std::int64_t in, std::int64_t out,
                Operand operand) const {
    Module module = make_.linear(LinearKind::biased, rows, in, {{name, out}}, operand);
    module.views = 0;  // its rows are no sequences
    return module;
  }

  Module cross_entropy(const std::string& name, std::int64_t rows, std::int64_t classes) const {
    return class_cross_entropy(make_, name, rows, classes);
  }

 private:
  /// A module over pictures, of which `kept` elements are kept. Returns what is kept, to add to.
  Bytes& in_computed_format(Module& module, std::int64_t elements, std::int64_t kept) const {
    module.forward_working = make_.computed(elements);
    module.backward_working = make_.computed(2 * elements);
    return module.kept = make_.computed(kept);
  }

  ModuleMaker make_;
  ModuleMaker run_;  ///< of kernels: pictures have the format of products, under autocast too
  bool last_;        ///< channels lie together
};

/// A residual block (`planes`: the channels of its stage): 3x3 - 3x3, or, as a bottleneck, 1x1 -
/// 3x3 - 1x1 with four times the channels out (the stride is the 3x3's: torchvision's "v1.5"). The
/// shortcut is projected if the shape changes. torchvision computes it last, so that backward comes
/// to it first.
Modules residual_block(const PictureModules& x, Pictures& pictures, const ResNetShape& shape,
                       std::int64_t planes, std::int64_t stride) {
  const bool bottleneck = shape.bottleneck;
  const std::int64_t channels = bottleneck ? 4 * planes : planes;
  const std::int64_t width = planes * shape.width_per_group / 64 * shape.groups;
  const Window one{1, 1, 0}, three{3, 1, 1}, striding{3, stride, 1}, projecting{1, stride, 0};
  Pictures shortcut = pictures;
  Modules block{with_calls(x.fork("shortcut", shortcut), 1)};
  const auto convolve = [&](int number, std::int64_t out, const Window& window,
                            std::int64_t groups = 1) {
    block.push_back(x.convolution(fmt::format("conv{}", number), pictures, out, window, false,
                                  Input::activation, groups));
    block.push_back(x.batch_norm(fmt::format("bn{}", number), pictures));
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
    block.push_back(with_calls(x.convolution("downsample.0", shortcut, channels, projecting), 1));
    block.push_back(x.batch_norm("downsample.1", shortcut));
  }
  block.push_back(x.add("add", pictures));
  relu(bottleneck ? 3 : 2);
  return block;
}

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

void check_size(const WorkloadSize& size, std::int64_t most_channels) {
  require_positive(size.batch, "batch");
  require_positive(size.image, "image");
  require_countable("an activation", {size.batch, size.image, size.image, most_channels});
}

}  // namespace

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
  check_size(size, std::max(widest, std::int64_t{4} * (64 << 3)));

  const PictureModules x(size);
  Pictures pictures{size.batch, 3, size.image};
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

Workload vgg_workload(const VggShape& shape, const WorkloadSize& size) {
  if (shape.channels.empty() || shape.channels.front() == 0)
    throw std::invalid_argument("channels: a VGG begins with a convolution");
  for (const int channels : shape.channels)
    if (channels != 0) require_positive(channels, "channels");
  require_positive(shape.classes, "classes");
  check_size(size, *std::max_element(shape.channels.begin(), shape.channels.end()));

  const PictureModules x(size);
  Pictures pictures{size.batch, 3, size.image};
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

Workload efficientnet_workload(const EfficientNetShape& shape, const WorkloadSize& size) {
  require_positive(shape.classes, "classes");
  if (!(shape.width > 0 && shape.width <= 100)) throw std::invalid_argument("width: 0 to 100");
  if (!(shape.depth > 0 && shape.depth <= 100)) throw std::invalid_argument("depth: 0 to 100");
  const std::int64_t widest = scaled_channels(shape.width * mobile_stages.back().channels);
  check_size(size, 6 * widest);

  const PictureModules x(size);
  Pictures pictures{size.batch, 3, size.image};
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
