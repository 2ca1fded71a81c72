// Two convolutions over the frames of a spectrogram make the encoder's tokens, to which fixed
// positions are added: a table that is not trained. The decoder reads text, and in every block what
// the encoder made of the sound. The encoder's result gathers gradients from all blocks of the
// decoder, so the encoder waits for all of them. The decoder's table of tokens is its output
// projection too, but is complete before the encoder's backward pass begins.
// Source: transformers 5, modeling_whisper.py, with scaled_dot_product_attention, no dropout; the
// kernels are those of a description of the same model.

#include "model/workload/whisper.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/workload/convolution.hpp"
#include "model/workload/transformer_modules.hpp"

namespace ddpsim {
namespace {

using namespace eager;
struct WhisperNumbers {
  std::int64_t batch, width, feed, heads, vocabulary, mels, positions;
  std::int64_t frames;          ///< of a sample's spectrogram
  std::int64_t source, target;  ///< tokens of a sample: the encoder's, the decoder's
};

WhisperNumbers numbers_of(const WhisperShape& shape, const WorkloadSize& size) {
  return {.batch = size.batch,
          .width = shape.d_model,
          .feed = shape.d_ff,
          .heads = shape.heads,
          .vocabulary = shape.vocabulary,
          .mels = shape.mels,
          .positions = shape.positions,
          .frames = 2 * std::int64_t{shape.source_positions},
          .source = shape.source_positions,
          .target = size.sequence};
}

TransformerShape inner_shape(const WhisperNumbers& n) {
  TransformerShape shape;
  shape.family = TransformerShape::Family::bert;  // for its norms
  shape.d_model = static_cast<int>(n.width);
  shape.d_ff = static_cast<int>(n.feed);
  shape.heads = static_cast<int>(n.heads);
  shape.vocabulary = static_cast<int>(n.vocabulary);
  return shape;
}

WorkloadSize sized(WorkloadSize size, std::int64_t tokens) {
  size.sequence = static_cast<int>(tokens);
  return size;
}

/// A convolution over a sequence with a window of three, and the GELU behind it.
struct SequenceConvolution {
  std::string name;
  std::int64_t channels, length, outputs, places;
  Input input;
};

/// The rows of its product are the places of all samples; its weight is [outputs, channels, 3].
Module convolution(const ModuleMaker& make, const WhisperNumbers& n, const SequenceConvolution& c) {
  const Operand operand = c.input == Input::data ? Operand::stored : Operand::computed;
  Module module = make.linear(LinearKind::biased, n.batch * c.places, 3 * c.channels,
                              {{c.name, c.outputs}}, operand, c.input);
  module.parameters.front().shape = {c.outputs, c.channels, 3};
  module.views = 0;
  const ConvolutionCall call{.shape = {.pictures = n.batch,
                                       .channels = c.channels,
                                       .pixels = c.length,
                                       .outputs = c.outputs,
                                       .places = c.places,
                                       .window = 3},
                             .type = make.product_type(),
                             .strided = c.places < c.length,
                             .biased = true};
  const std::int64_t read = n.batch * c.channels * c.length;
  const std::int64_t written = n.batch * c.outputs * c.places;
  const Bytes moved = make.computed(read + written + 3 * c.channels * c.outputs);
  ConvolutionGradients gradients = gradient_parts(call, c.input == Input::activation);
  for (Kernel& kernel : module.forward) {
    if (kernel.gemm) {
      kernel.parts = forward_parts(call);
      kernel.traffic = moved;
    } else {  // a cast: of the input itself, not of its windows
      kernel = make.eager(
          kernel.name, {make.to_computed(c.input == Input::data ? read : 0),
                        make.to_computed(3 * c.channels * c.outputs), make.to_computed(c.outputs)});
    }
  }
  for (Kernel& kernel : module.backward) {
    if (kernel.gemm) kernel.traffic = moved;
    if (kernel.name.ends_with(".grad_data")) kernel.parts = gradients.input;
    if (kernel.name.ends_with(".grad_weight")) kernel.parts = gradients.weight;
    if (kernel.name.ends_with(".grad_bias")) kernel.parts = gradients.bias;
  }
  module.kept = make.computed(read + (make.casts() ? 3 * c.channels * c.outputs : 0));
  module.forward_working = make.computed(written);
  module.backward_working = make.computed(written + (c.input == Input::data ? 0 : read));
  return module;
}

Module gelu_of(const ModuleMaker& make, const std::string& name, std::int64_t elements) {
  const DType type = make.computed_type();
  const auto kernel = [](double passes) { return of(Call::gelu, {passes, PatternKind::gelu}); };
  Module module = make.elementwise(name, {elements, {kernel(2)}, type},
                                   {elements, {eager::backward(kernel(3))}, type});
  module.kept = make.computed(elements);  // its input
  return module;
}

/// The fixed positions added to what the convolutions made, which lies with channels first.
Module source_positions(const ModuleMaker& make, const WhisperNumbers& n) {
  const std::int64_t table = n.source * n.width, stream = n.batch * table;
  const double spread = 1.0 / static_cast<double>(n.batch);
  const EagerKernel add =
      make.casts() ? mixed(1 + make.computed_passes() + spread) : strided(2 + spread);
  Module module;
  module.forward = {
      make.eager("embed_positions", {{n.source, {fill(2)}, DType::fp32},
                                     {table, {{2, PatternKind::gather, n.source, n.width}}},
                                     {stream, {add}}})};
  const EagerKernels narrowed = make.to_computed(stream);
  if (!narrowed.passes.empty())
    module.backward = {make.eager("embed_positions.grad", {narrowed}, Pass::backward)};
  module.forward_working = make.stored(stream);
  module.calls = 1;
  return module;
}

/// The decoder's positions are rows of a table that indices choose: backward these are sorted.
Module target_positions(const ModuleMaker& make, const WhisperNumbers& n) {
  const std::int64_t table = n.positions * n.width, tokens = n.batch * n.target;
  const std::int64_t stream = tokens * n.width;
  const std::string name = "embed_positions";
  // A sort of eight bytes, counted in units of four; its passes are those of a description.
  EagerKernel sorting = again(68);
  sorting.launches = 10;
  Module module;
  module.forward = {make.eager(name, {{n.target, {fill(2), 4}, DType::fp32},
                                      {tokens, {2}, DType::fp32},
                                      {stream, {{2, PatternKind::gather, tokens, n.width}, 3}}})};
  module.backward = {make.eager(name + ".grad",
                                {{table, {fill(1), again(2)}},
                                 {tokens, {again(fill(2)), sorting}, DType::fp32},
                                 {stream, {again(3)}}},
                                Pass::backward)};
  module.parameters = {make.parameter(name + ".weight", {n.positions, n.width})};
  module.kept = tokens * Bytes{8};
  module.forward_working = make.stored(stream);
  module.backward_working = make.stored(2 * stream);
  module.calls = 1;
  return module;
}

/// The decoder's input: the labels shifted by one place, and what is no label replaced.
Module shifted_labels(const ModuleMaker& make, const WhisperNumbers& n) {
  Module module;
  module.forward = {
      make.eager("shift", {{n.batch * n.target,
                            {fill(2), strided(4), strided(4), fill(0), strided(0), 2, 4},
                            DType::fp32}})};
  return module;
}

/// One attention: who asks, who is asked.
struct WhisperAttention {
  std::string name;
  bool cross = false;               ///< the keys are those of the encoder's result
  bool first = true, last = false;  ///< of the decoder's blocks, which share that
};

/// The modules of one stack: the encoder's or the decoder's.
class WhisperStack {
 public:
  WhisperStack(const WhisperNumbers& n, const ModuleMaker& make, const WorkloadSize& size,
               std::int64_t length)
      : n_(n), make_(make), rows_(n.batch * length), x_(inner_shape(n), sized(size, length)) {}

  const TransformerModules& shared() const { return x_; }
  std::int64_t stream() const { return rows_ * n_.width; }

  /// Queries, keys and values, each copied so that heads lie together, the attention, and its
  /// projection, added to the stream. `source` holds the keys.
  Modules attention(const WhisperAttention& a, const WhisperStack& source, Mask mask) const {
    // Autocast copies what several projections read for each of them.
    const Operand again_read = make_.casts() ? Operand::stored : Operand::kept;
    const Operand key_read = a.cross && a.first ? Operand::stored : again_read;
    Modules modules;
    if (!a.cross) modules.push_back(x_.fork(a.name + ".queries"));
    modules.push_back(
        with_calls(project(a.name + ".q_proj", LinearKind::biased, Operand::stored), 1));
    modules.push_back(heads(a.name + ".scale", 2));
    modules.push_back(source.x_.fork(a.name + ".keys"));
    modules.push_back(source.project(a.name + ".k_proj", LinearKind::linear, key_read));
    modules.push_back(source.heads(a.name + ".key_heads", 0));
    if (a.cross && !a.last) modules.push_back(source.x_.fork(a.name + ".encoder_output"));
    modules.push_back(source.project(a.name + ".v_proj", LinearKind::biased, again_read));
    modules.push_back(source.heads(a.name + ".value_heads", 0));
    modules.push_back(x_.fused_attention(a.name, mask, source.rows_ / n_.batch));
    // The heads lie side by side again as attention writes them; its result is kept there.
    modules.push_back(
        with_calls(project(a.name + ".out_proj", LinearKind::biased, Operand::kept), 0, 3));
    modules.push_back(residual(a.name + ".residual"));
    return modules;
  }

  Modules feed_forward() const {
    return {
        x_.layer_norm("final_layer_norm", Residual::goes_on),
        make_.linear(LinearKind::biased, rows_, n_.width, {{"fc1", n_.feed}}, Operand::stored),
        x_.gelu("activation_fn"),
        make_.linear(LinearKind::biased, rows_, n_.feed, {{"fc2", n_.width}}, Operand::computed),
        residual("residual")};
  }

 private:
  Module project(const std::string& name, LinearKind kind, Operand operand) const {
    return make_.linear(kind, rows_, n_.width, {{name, n_.width}}, operand);
  }

  /// Heads that lie together: a copy, after a multiplication where there are `scaled` passes of it.
  /// Backward flash attention's gradients are copied, the memory-efficient kernel's lie as needed.
  Module heads(const std::string& name, int scaled) const {
    const DType type = make_.computed_type();
    EagerKernels forward{stream(), {}, type}, backward{stream(), {}, type};
    if (scaled > 0) forward.passes.push_back(scaled);
    forward.passes.push_back(strided(2));
    if (type != DType::fp32) backward.passes.push_back(strided(2));
    if (scaled > 0) backward.passes.push_back(scaled);
    Module module = make_.elementwise(name, forward, backward);
    module.views = 2;
    return module;
  }

  Module residual(const std::string& name) const {
    if (make_.casts()) return x_.add(name);
    return make_.elementwise(name, {stream(), {strided(3)}}, {});
  }

  WhisperNumbers n_;
  ModuleMaker make_;
  std::int64_t rows_;
  TransformerModules x_;
};

/// WhisperAttention and the norm before it, whose parameters are registered in this order.
void register_attention(std::vector<std::string>& names, const std::string& attention) {
  for (const char* part : {"k_proj", "v_proj", "q_proj", "out_proj"})
    names.push_back(fmt::format("{}.{}", attention, part));
  names.push_back(attention + "_layer_norm");
}

void hold(Modules& modules, Bytes backward) {
  for (Module& module : modules) module.backward_working += backward;
}

Modules encoder_block(const WhisperStack& encoder) {
  Modules modules{
      with_calls(encoder.shared().layer_norm("self_attn_layer_norm", Residual::goes_on), 1)};
  append(modules, encoder.attention({"self_attn"}, encoder, Mask::none));
  append(modules, encoder.feed_forward());
  return modules;
}

Modules decoder_block(const WhisperStack& decoder, const WhisperStack& encoder, bool first,
                      bool last) {
  Modules modules{
      with_calls(decoder.shared().layer_norm("self_attn_layer_norm", Residual::goes_on), 1)};
  append(modules, decoder.attention({"self_attn"}, decoder, Mask::causal));
  modules.push_back(decoder.shared().layer_norm("encoder_attn_layer_norm", Residual::goes_on));
  append(modules, decoder.attention({"encoder_attn", true, first, last}, encoder, Mask::none));
  append(modules, decoder.feed_forward());
  return modules;
}

void append_blocks(Workload& workload, const std::string& stack, int layers,
                   const std::vector<std::string>& names, const auto& block) {
  for (int i = 0; i < layers; ++i) {
    const std::string name = fmt::format("model.{}.layers.{}", stack, i);
    append_layer(workload, name, name + ".", block(i), {names.begin(), names.end()});
  }
}

void check_shape(const WhisperShape& shape, const WorkloadSize& size) {
  require_positive(shape.layers, "layers");
  require_positive(shape.d_model, "d_model");
  require_positive(shape.d_ff, "d_ff");
  require_positive(shape.heads, "heads");
  require_positive(shape.vocabulary, "vocabulary");
  require_positive(shape.mels, "mels");
  require_positive(shape.positions, "positions");
  require_positive(shape.source_positions, "source_positions");
  require_positive(size.batch, "batch");
  require_positive(size.sequence, "sequence");
  if (shape.decoder_layers < 0)
    throw std::invalid_argument(
        fmt::format("decoder_layers must not be negative, got {}", shape.decoder_layers));
  if (shape.d_model % shape.heads != 0)
    throw std::invalid_argument(
        fmt::format("{} heads do not divide a d_model of {}", shape.heads, shape.d_model));
  if (size.sequence > shape.positions)
    throw std::invalid_argument(
        fmt::format("a sequence of {} is longer than the {} positions learned", size.sequence,
                    shape.positions));
  const std::int64_t widest = std::max({shape.d_model, shape.d_ff, shape.vocabulary, shape.mels});
  const std::int64_t longest = 2 * std::int64_t{std::max(shape.source_positions, shape.positions)};
  require_countable("a weight", {3, shape.d_model, widest});
  require_countable("an activation", {size.batch, longest, 3, widest});
  require_countable("the attention scores", {size.batch, shape.heads, longest, longest});
}

}  // namespace

Workload whisper_workload(const WhisperShape& shape, const WorkloadSize& size) {
  check_shape(shape, size);
  const WhisperNumbers n = numbers_of(shape, size);
  const ModuleMaker make(size.dtype, size.compute);
  const WhisperStack encoder(n, make, size, n.source), decoder(n, make, size, n.target);
  const int decoder_layers = shape.decoder_layers > 0 ? shape.decoder_layers : shape.layers;
  // Backward there are, while the decoder runs, the head's gradient of the table and the gradient
  // that the encoder's result gathers.
  const Bytes table = make.stored(n.vocabulary * n.width);
  const Bytes in_decoder = table + make.stored(encoder.stream());

  Workload workload;
  workload.source =
      "Hugging Face WhisperForConditionalGeneration, fused attention, without dropout";
  workload.frozen = make.stored(n.source * n.width);

  const SequenceConvolution first{"conv1", n.mels, n.frames, n.width, n.frames, Input::data};
  const SequenceConvolution second{"conv2", n.width,  n.frames,
                                   n.width, n.source, Input::activation};
  append_layer(workload, "model.encoder.start", "model.encoder.",
               {shifted_labels(make, n), with_calls(convolution(make, n, first), 2),
                gelu_of(make, "gelu1", n.batch * n.frames * n.width), convolution(make, n, second),
                gelu_of(make, "gelu2", encoder.stream()), source_positions(make, n)});

  std::vector<std::string> names;
  register_attention(names, "self_attn");
  const std::vector<std::string> rest{"fc1", "fc2", "final_layer_norm"};
  std::vector<std::string> in_encoder = names;
  in_encoder.insert(in_encoder.end(), rest.begin(), rest.end());
  append_blocks(workload, "encoder", shape.layers, in_encoder,
                [&](int) { return encoder_block(encoder); });
  append_layer(workload, "model.encoder.layer_norm", "model.encoder.",
               {encoder.shared().layer_norm("layer_norm", Residual::ends)});

  Modules start{with_calls(decoder.shared().tied_embedding("embed_tokens"), 1),
                target_positions(make, n)};
  hold(start, in_decoder);
  append_layer(workload, "model.decoder.embed_tokens", "model.decoder.", start);

  register_attention(names, "encoder_attn");
  names.insert(names.end(), rest.begin(), rest.end());
  append_blocks(workload, "decoder", decoder_layers, names, [&](int i) {
    Modules modules = decoder_block(decoder, encoder, i == 0, i + 1 == decoder_layers);
    hold(modules, in_decoder);
    return modules;
  });

  append_layer(workload, "model.decoder.layer_norm", "model.decoder.",
               {decoder.shared().layer_norm("layer_norm", Residual::ends)});
  Module loss = class_cross_entropy(make, "loss", n.batch * n.target, n.vocabulary);
  append_layer(workload, "proj_out", "", {decoder.shared().tied_projection("proj_out"), loss});
  return workload;
}

}  // namespace ddpsim
