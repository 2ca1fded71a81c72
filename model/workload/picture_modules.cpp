#include "model/workload/picture_modules.hpp"

#include <stdexcept>

namespace ddpsim {

using namespace eager;

Pictures after(const Pictures& before, const Window& window, std::int64_t channels) {
  const auto extent = [&](std::int64_t along) {
    const std::int64_t span = along + 2 * window.padding - window.dilation * (window.size - 1) - 1;
    if (span < 0)
      throw std::invalid_argument("image: too small, nothing is left of it after pooling");
    return (span + (window.rounds_up ? window.stride - 1 : 0)) / window.stride + 1;
  };
  return {before.batch, channels, extent(before.height), extent(before.width)};
}

void check_pictures(const WorkloadSize& size, std::int64_t most_channels) {
  require_positive(size.batch, "batch");
  require_positive(size.image, "image");
  require_countable("an activation", {size.batch, size.image, size.image, most_channels});
}

Module PictureModules::batch_norm(const std::string& name, const Pictures& pictures) const {
  const std::int64_t elements = pictures.elements();
  const DType type = make_.computed_type();
  const auto kernel = [&](double passes, PatternKind kind) {
    EagerKernel each(passes, kind, pictures.channels, elements / pictures.channels);
    each.pattern.inner = pictures.places();
    each.pattern.channels_last = last_;
    each.call = Call::batch_norm;
    return each;
  };
  Module module;
  // cuDNN's kernels do not take bf16, so PyTorch's own run: statistics, their running means, the
  // result; one kernel backward.
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
  // A batch norm keeps its input, and the mean and deviation of every channel.
  in_computed_format(module, elements, elements) += pictures.channels * Bytes{8};
  return module;
}

Module PictureModules::frozen_norm(const std::string& name, const Pictures& pictures) const {
  const std::int64_t elements = pictures.elements();
  const DType type = make_.computed_type();
  Module module;
  module.forward = {make_.eager(name, {{pictures.channels, {2, 2, 3, 3, 3}, DType::fp32},
                                       {elements, {strided(2), strided(2)}, type}})};
  module.backward = {make_.eager(name + ".grad", {{elements, {strided(2)}, type}}, Pass::backward)};
  in_computed_format(module, elements, 0) = pictures.channels * Bytes{4};
  module.frozen_statistics = pictures.channels;
  module.calls = 1;
  module.views = 4;
  return module;
}

Module PictureModules::relu(const std::string& name, std::int64_t elements) const {
  Module module = run_.elementwise(name, {elements, {2}}, {elements, {3}});
  in_computed_format(module, elements, elements);
  module.calls = 1;
  return module;
}

Module PictureModules::add(const std::string& name, const Pictures& pictures) const {
  return run_.elementwise(name, {pictures.elements(), {3}}, {});
}

Module PictureModules::silu(const std::string& name, std::int64_t elements) const {
  Module module = run_.elementwise(name, {elements, {2, 2}}, {elements, {of(Call::gelu, 3)}});
  in_computed_format(module, elements, 2 * elements);
  module.calls = 1;
  return module;
}

Module PictureModules::sigmoid(const std::string& name, std::int64_t elements) const {
  Module module = run_.elementwise(name, {elements, {2}}, {elements, {3}});
  in_computed_format(module, elements, elements);
  module.calls = 1;
  return module;
}

Module PictureModules::scale(const std::string& name, const Pictures& pictures) const {
  const std::int64_t rows = pictures.batch * pictures.channels;
  Module module = run_.elementwise(
      name, {pictures.elements(), {strided(2)}},
      {pictures.elements(), {strided(2), again(3), again(reduced(1, rows, pictures.places()))}});
  in_computed_format(module, pictures.elements(), pictures.elements());
  return module;
}

Module PictureModules::drop_pictures(const std::string& name, const Pictures& pictures) const {
  Module module =
      run_.elementwise(name, {pictures.elements(), {only_gpu(fill(0)), only_gpu(0), strided(2)}},
                       {pictures.elements(), {strided(2)}});
  module.calls = 1;
  return module;
}

void PictureModules::keep_result(Module& module, const Pictures& pictures) const {
  module.kept += make_.computed(pictures.elements());
}

Module PictureModules::fork(const std::string& name, const Pictures& pictures) const {
  return run_.fork(name, pictures.elements());
}

Module PictureModules::max_pool(const std::string& name, Pictures& pictures,
                                const Window& window) const {
  const std::int64_t before = pictures.elements();
  pictures = after(pictures, window, pictures.channels);
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

Module PictureModules::average_pool(const std::string& name, Pictures& pictures,
                                    std::int64_t side) const {
  const std::int64_t before = pictures.elements();
  const std::int64_t window = pictures.height / side * (pictures.width / side);
  pictures.height = pictures.width = side;
  const std::int64_t elements = before + pictures.elements();
  // A single mean is a reduction, and backward a quotient; a grid has kernels of its own.
  const EagerKernel forward = side == 1
                                  ? last_ ? sum_of_rows(1, window, pictures.elements())
                                          : reduced(1, pictures.elements(), window)
                                  : EagerKernel(1, PatternKind::pool, pictures.elements(), window);
  const EagerKernel backward =
      side == 1 ? strided(1) : eager::backward({1, PatternKind::pool, pictures.elements(), window});
  Module module = run_.elementwise(name, {elements, {forward}}, {elements, {backward}});
  in_computed_format(module, before, 0);
  module.calls = 1;
  module.views = side == 1 ? 1 : 0;
  return module;
}

Module PictureModules::linear(const std::string& name, std::int64_t rows, std::int64_t in,
                              std::int64_t out, Operand operand) const {
  Module module = make_.linear(LinearKind::biased, rows, in, {{name, out}}, operand);
  module.views = 0;  // its rows are no sequences
  return module;
}

Module PictureModules::cross_entropy(const std::string& name, std::int64_t rows,
                                     std::int64_t classes) const {
  return class_cross_entropy(make_, name, rows, classes);
}

Bytes& PictureModules::in_computed_format(Module& module, std::int64_t elements,
                                          std::int64_t kept) const {
  module.forward_working = make_.computed(elements);
  module.backward_working = make_.computed(2 * elements);
  return module.kept = make_.computed(kept);
}

}  // namespace ddpsim
