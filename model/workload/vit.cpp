// A picture is cut into square patches, each of which is projected to a token; a class token goes
// before them, and positions are learned. Blocks are those of a transformer with norms first. Only
// the class token reaches the head.

#include "model/workload/vit.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "model/workload/checkpoints.hpp"
#include "model/workload/convolution.hpp"
#include "model/workload/transformer_modules.hpp"

namespace ddpsim {
namespace {

using namespace eager;
struct VitNumbers {
  std::int64_t batch, patches, tokens, width;  ///< patches: of a picture; tokens: of all
  std::int64_t stream() const { return tokens * width; }
};

VitNumbers numbers_of(const VitShape& shape, const WorkloadSize& size) {
  const std::int64_t side = size.image / shape.patch, patches = side * side;
  return {size.batch, patches, size.batch * (patches + 1), shape.d_model};
}

/// The convolution whose windows are the patches: a product of all patches with one matrix. Its
/// weight is known by the four dimensions of a convolution's.
Module patch_projection(const ModuleMaker& make, const VitShape& shape, const VitNumbers& n,
                        std::int64_t image) {
  const std::int64_t pixels = std::int64_t{3} * shape.patch * shape.patch;
  Module module = make.linear(LinearKind::biased, n.batch * n.patches, pixels,
                              {{"conv_proj", n.width}}, Operand::stored, Input::data);
  module.parameters.front().shape = {n.width, 3, shape.patch, shape.patch};
  module.views = 1;
  const ConvolutionCall call{.shape = {.pictures = n.batch,
                                       .channels = 3,
                                       .pixels = image * image,
                                       .outputs = n.width,
                                       .places = n.patches,
                                       .window = std::int64_t{shape.patch} * shape.patch},
                             .type = make.product_type(),
                             .strided = true,
                             .biased = true};
  for (Kernel& kernel : module.forward)
    if (kernel.gemm) kernel.parts = forward_parts(call);
  const ConvolutionGradients gradients = gradient_parts(call, false);
  for (Kernel& kernel : module.backward) {
    if (kernel.gemm) kernel.parts = gradients.weight;
    if (kernel.name.ends_with(".grad_bias")) kernel.parts = gradients.bias;
  }
  return module;
}

/// The class token is put before the patches (a copy), and positions are added; backward each is a
/// sum over the batch.
Module class_token(const ModuleMaker& make, const VitNumbers& n) {
  // A GPU's copy makes the format that positions have.
  Module module =
      make.elementwise("class_token", {n.stream(), {2}},
                       {n.stream(), {0, only_cpu(1), only_gpu(sum_of_rows(0, n.batch, n.width))}});
  module.parameters = {make.parameter("class_token", {1, 1, n.width})};
  module.views = 3;
  return module;
}
Module positions(const ModuleMaker& make, const VitNumbers& n) {
  const std::int64_t row = (n.patches + 1) * n.width;
  Module module =
      make.elementwise("encoder.pos_embedding", {n.stream(), {only_cpu(3), only_gpu(strided(2))}},
                       {n.stream(), {sum_of_rows(1, n.batch, row)}});
  module.parameters = {make.parameter("encoder.pos_embedding", {1, n.patches + 1, n.width})};
  module.calls = 1;
  return module;
}

/// nn.MultiheadAttention's projection of queries, keys and values is one, whose parameters are its
/// own and not a module's; what comes out is copied so that each lies together.
Module packed_projection(const ModuleMaker& make, const VitNumbers& n) {
  const std::string name = "self_attention.in_proj";
  Module module =
      make.linear(LinearKind::biased, n.tokens, n.width, {{name, 3 * n.width}}, Operand::stored);
  module.parameters[0].name = "self_attention.in_proj_weight";
  module.parameters[1].name = "self_attention.in_proj_bias";
  // A GPU brings the tokens of a sample together before, and adds the bias behind (`split`).
  for (Kernel& kernel : module.forward)
    if (kernel.gemm) kernel = make.gemm(name, *kernel.gemm, {2, Call::product});
  module.forward.insert(module.forward.begin(),
                        make.eager(name + ".together", {{n.stream(), {only_gpu(strided(2))}}}));
  module.calls = 1;
  return module;
}
/// The heads side by side again. Flash attention, of 16 bits, writes them so.
Module merge(const ModuleMaker& make, const VitNumbers& n) {
  const DType type = make.computed_type();
  const EagerKernels copy{n.stream(), {strided(2)}, type};
  return make.elementwise("self_attention.merge", type == DType::fp32 ? copy : EagerKernels{},
                          copy);
}

/// Queries, keys and values as they come out of one projection, each lying together. On a GPU the
/// bias is added before; backward each gradient is put into zeros of all three, which are added up,
/// and the memory-efficient kernel's are copied first.
Module split(const ModuleMaker& make, const VitNumbers& n) {
  const DType type = make.computed_type();
  const std::int64_t all = 3 * n.stream();
  const std::vector<EagerKernel> put{only_gpu(fill(1)), only_gpu(follows(2.0 / 3))};
  const EagerKernel added = only_gpu(again(3));
  std::vector<EagerKernel> backward{only_cpu(2)};
  if (type == DType::fp32) backward.insert(backward.end(), 6, only_gpu(strided(2.0 / 3)));
  for (int part = 0; part < 3; ++part) {
    backward.insert(backward.end(), put.begin(), put.end());
    if (part > 0) backward.push_back(added);
  }
  backward.push_back(only_gpu(strided(2)));
  Module module =
      make.elementwise("self_attention.split", {all, {only_gpu(strided(2)), strided(2)}, type},
                       {all, backward, type});
  module.views = 16;
  return module;
}

Modules block(const ModuleMaker& make, const TransformerModules& x, const VitShape& shape,
              const VitNumbers& n) {
  const std::string attention = "self_attention";
  return {
      with_calls(x.layer_norm("ln_1", Residual::goes_on), 1),
      packed_projection(make, n),
      split(make, n),
      x.fused_attention(attention, Mask::none),
      merge(make, n),
      x.linear(LinearKind::biased, n.width, {attention + ".out_proj", n.width}, Operand::computed),
      x.add(attention + ".residual"),  // behind a dropout; the projection is no module's call
      x.layer_norm("ln_2", Residual::goes_on),
      with_calls(x.linear(LinearKind::biased, n.width, {"mlp.0", shape.d_ff}, Operand::stored), 1),
      x.gelu("mlp.1"),
      with_calls(x.linear(LinearKind::biased, shape.d_ff, {"mlp.3", n.width}, Operand::computed),
                 2),
  };
}

/// The head reads a view of the class tokens, which keeps the whole stream unless autocast copies.
Modules head(const ModuleMaker& make, const TransformerModules& x, const VitShape& shape,
             const VitNumbers& n) {
  Module view = make.elementwise("class_token.view", {}, {n.stream(), {fill(1), follows(0)}});
  view.kept = make.casts() ? make.computed(n.batch * n.width) : make.stored(n.stream());
  Module loss = class_cross_entropy(make, "loss", n.batch, shape.classes);
  return {x.layer_norm("encoder.ln", Residual::ends), view,
          with_calls(make.linear(LinearKind::biased, n.batch, n.width,
                                 {{"heads.head", shape.classes}}, Operand::kept),
                     1, -2),
          loss};
}

void check_shape(const VitShape& shape, const WorkloadSize& size) {
  require_positive(shape.layers, "layers");
  require_positive(shape.d_model, "d_model");
  require_positive(shape.d_ff, "d_ff");
  require_positive(shape.heads, "heads");
  require_positive(shape.patch, "patch");
  require_positive(shape.classes, "classes");
  require_positive(size.batch, "batch");
  require_positive(size.image, "image");
  if (shape.d_model % shape.heads != 0)
    throw std::invalid_argument(
        fmt::format("{} heads do not divide a d_model of {}", shape.heads, shape.d_model));
  if (size.image % shape.patch != 0)
    throw std::invalid_argument(
        fmt::format("patches of {} do not divide a picture of {}", shape.patch, size.image));
  const std::int64_t side = size.image / shape.patch, sequence = side * side + 1;
  const std::int64_t widest = std::max(shape.d_model, shape.d_ff);
  require_countable("a weight", {3, shape.d_model, std::max<std::int64_t>(widest, shape.classes)});
  require_countable("a patch's weight", {3, shape.d_model, shape.patch, shape.patch});
  require_countable("an activation", {size.batch, sequence, 3, widest});
  require_countable("the attention scores", {size.batch, shape.heads, sequence, sequence});
}

}  // namespace

Workload vit_workload(const VitShape& shape, const WorkloadSize& size) {
  check_shape(shape, size);
  const VitNumbers n = numbers_of(shape, size);
  TransformerShape inner;
  inner.family = TransformerShape::Family::bert;  // for its norms
  inner.layers = shape.layers;
  inner.d_model = shape.d_model;
  inner.d_ff = shape.d_ff;
  inner.heads = shape.heads;
  WorkloadSize tokens = size;
  tokens.sequence = static_cast<int>(n.patches + 1);
  const TransformerModules x(inner, tokens);
  const ModuleMaker make(size.dtype, size.compute);

  Workload workload;
  workload.source = "torchvision VisionTransformer with fused attention, without dropout";
  append_layer(
      workload, "embedding", "",
      {patch_projection(make, shape, n, size.image), class_token(make, n), positions(make, n)});
  // A module's own parameters are registered before those of the modules in it.
  std::swap(workload.parameters[1], workload.parameters[2]);
  std::swap(workload.parameters[0], workload.parameters[1]);
  Modules modules = block(make, x, shape, n);
  for (int i = 0; i < shape.layers; ++i) {
    const std::string name = fmt::format("encoder.layers.encoder_layer_{}", i);
    append_layer(workload, name, name + ".", modules);
    if (is_checkpoint(i, size.checkpointed))
      checkpoint_last_layer(workload, make.stored(n.stream()));
    if (i == 0) modules.insert(modules.begin(), x.add("mlp.residual"));
  }
  Modules last = head(make, x, shape, n);
  last.insert(last.begin(), x.add("mlp.residual"));
  append_layer(workload, "head", "", last);
  return workload;
}

}  // namespace ddpsim
