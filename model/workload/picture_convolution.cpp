#include "model/workload/convolution.hpp"
#include "model/workload/picture_modules.hpp"

namespace ddpsim {

using namespace eager;

Module PictureModules::convolution(const std::string& name, Pictures& pictures,
                                   std::int64_t channels, const Window& window, bool biased,
                                   Input input, std::int64_t groups) const {
  const Pictures before = pictures;
  pictures = after(before, window, channels);
  const std::int64_t pixels = pictures.batch * pictures.places();
  const std::int64_t window_area = window.size * window.size;
  const std::int64_t taps = before.channels / groups * window_area;  // of an output
  const std::int64_t outputs = channels / groups;                    // of a group
  const std::int64_t moved = before.elements() + channels * taps + pictures.elements();

  const ConvolutionCall call{.shape = {.pictures = before.batch,
                                       .channels = before.channels,
                                       .pixels = before.places(),
                                       .outputs = channels,
                                       .places = pictures.places(),
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
        {make_.to_computed(input == Input::data ? before.elements() : 0),
         make_.to_computed(channels * taps), make_.to_computed(biased ? channels : 0)}));
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
  if (!to_input) module.kept = make_.computed(before.elements());
  if (make_.casts()) module.kept += make_.computed(channels * taps);
  module.forward_working = make_.computed(pictures.elements());
  module.backward_working =
      make_.computed(pictures.elements() + (to_input ? before.elements() : 0));
  return module;
}

Module PictureModules::unfolding(const std::string& name, Pictures& pictures, std::int64_t channels,
                                 std::int64_t side) const {
  const Pictures small = pictures;
  pictures = {small.batch, channels, small.height * side, small.width * side};
  const std::int64_t area = side * side, taps = channels * area;
  const std::int64_t places = small.batch * small.places(), weight = small.channels * taps;
  const std::int64_t moved = small.elements() + weight + pictures.elements();
  const ConvolutionCall undone{.shape = {.pictures = small.batch,
                                         .channels = channels,
                                         .pixels = pictures.places(),
                                         .outputs = small.channels,
                                         .places = small.places(),
                                         .window = area,
                                         .groups = 1,
                                         .channels_last = last_},
                               .type = make_.product_type(),
                               .strided = side > 1};
  ConvolutionGradients gradients = gradient_parts(undone, true);
  Module module;
  const auto run = [&](std::vector<Kernel>& pass, const std::string& kernel, const Gemm& shape,
                       std::vector<KernelPart> parts) {
    pass.push_back(run_.gemm(kernel, shape, moved));
    pass.back().parts = std::move(parts);
  };
  if (make_.casts())
    module.forward = {
        make_.eager(name + ".cast", {make_.to_computed(weight), make_.to_computed(channels)})};
  run(module.forward, name, {places, taps, small.channels}, std::move(gradients.input));
  module.forward.push_back(
      run_.eager(name + ".bias", {{pictures.elements(), {follows(strided(2))}}}));
  run(module.backward, name + ".grad_data", {places, small.channels, taps}, forward_parts(undone));
  run(module.backward, name + ".grad_weight", {small.channels, taps, places},
      std::move(gradients.weight));
  module.backward.push_back(
      run_.eager(name + ".grad_bias",
                 {{pictures.elements(),
                   {follows(last_ ? sum_of_rows(1, pictures.batch * pictures.places(), channels)
                                  : reduced(1, channels, pictures.batch * pictures.places()))}}}));
  if (make_.casts())
    module.backward.push_back(make_.eager(
        name + ".grad_cast", {make_.to_stored(weight), make_.to_stored(channels)}, Pass::backward));
  const int last = static_cast<int>(module.backward.size()) - 1;
  module.parameters = {
      make_.parameter(name + ".weight", {small.channels, channels, side, side}, last),
      make_.parameter(name + ".bias", {channels}, last)};
  if (make_.casts()) module.kept += make_.computed(weight);
  module.forward_working = make_.computed(pictures.elements());
  module.backward_working = make_.computed(pictures.elements() + small.elements());
  module.calls = 1;
  return module;
}

}  // namespace ddpsim
