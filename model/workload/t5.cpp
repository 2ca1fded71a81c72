// An encoder reads one sequence of tokens, a decoder another one and, in every block, what the
// encoder made of the first. Three things of T5 shape the backward pass. The encoder's result
// gathers gradients from every block of the decoder, so the encoder waits for all of the decoder.
// The bias of relative positions that the first block of a stack trains is added to the scores of
// all its blocks, so its gradient is complete in the first block, which is the last of backward.
// One table embeds both sequences and projects to the vocabulary: complete at the very end.
// Source: transformers 4.0 to 4.57, modeling_t5.py, tie_word_embeddings as in T5 1.0, no dropout.

#include "model/workload/t5.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/workload/transformer_modules.hpp"

namespace ddpsim {
namespace {

using namespace eager;
struct T5Numbers {
  std::int64_t batch, width, inner, feed, heads, head_size, vocabulary, buckets;
  std::int64_t source, target;  ///< tokens of a sample: the encoder's, the decoder's
};

T5Numbers numbers_of(const T5Shape& shape, const WorkloadSize& size) {
  const std::int64_t head_size =
      shape.head_size > 0 ? shape.head_size : shape.d_model / shape.heads;
  return {.batch = size.batch,
          .width = shape.d_model,
          .inner = shape.heads * head_size,
          .feed = shape.d_ff,
          .heads = shape.heads,
          .head_size = head_size,
          .vocabulary = shape.vocabulary,
          .buckets = shape.position_buckets,
          .source = size.sequence,
          .target = shape.decoder_sequence > 0 ? shape.decoder_sequence : size.sequence};
}

/// One attention: who asks, who is asked, and how the scores' bias comes about.
struct T5Attention {
  std::string name;
  std::int64_t queries, keys;  ///< tokens of a sample
  bool trained_bias;           ///< relative positions, rather than zeros and a mask
  bool first, last;            ///< of its stack, whose blocks share the bias
};

/// The modules of one stack: the encoder's or the decoder's.
class T5Stack {
 public:
  T5Stack(const T5Numbers& n, const ModuleMaker& make, const WorkloadSize& size,
          std::int64_t length)
      : n_(n), make_(make), rows_(n.batch * length), x_(inner_shape(n), sized(size, length)) {}

  const TransformerModules& shared() const { return x_; }
  std::int64_t stream() const { return rows_ * n_.width; }

  /// T5LayerNorm: the mean square is that of a copy in fp32, what is scaled is not the copy.
  Module norm(const std::string& name, Residual residual) const {
    Module module = x_.rms_norm(name, residual);
    if (make_.stored(1) < Bytes{4}) module.kept += make_.stored(stream());
    return module;
  }

  /// Queries, keys and values of one stream.
  Module query_key_value(const std::string& name) const {
    return make_.linear(LinearKind::linear, rows_, n_.width,
                        {{name + ".q", n_.inner}, {name + ".k", n_.inner}, {name + ".v", n_.inner}},
                        Operand::stored);
  }
  Module query(const std::string& name) const {
    return make_.linear(LinearKind::linear, rows_, n_.width, {{name + ".q", n_.inner}},
                        Operand::stored);
  }
  Module output(const std::string& name) const {
    return make_.linear(LinearKind::linear, rows_, n_.inner, {{name + ".o", n_.width}},
                        Operand::computed);
  }

  /// Keys and values of another stream, which the first block that reads it keeps for all, and to
  /// which each but the last adds gradients. Autocast copies it for each projection.
  Modules key_value_of(const T5Stack& other, const T5Attention& a) const {
    const Operand operand = a.first || make_.casts() ? Operand::stored : Operand::kept;
    Modules modules;
    if (!a.last) modules.push_back(make_.fork(a.name + ".encoder_output", other.stream()));
    modules.push_back(make_.linear(LinearKind::linear, other.rows_, n_.width,
                                   {{a.name + ".k", n_.inner}, {a.name + ".v", n_.inner}},
                                   operand));
    return modules;
  }

  /// softmax(Q K^T + bias) V, the scores in memory, from the first product to the last.
  Modules attention(const T5Attention& a) const {
    Modules modules{scores(a)};
    if (a.first) modules.push_back(a.trained_bias ? relative_bias(a) : mask_bias(a));
    modules.push_back(softmax(a));
    modules.push_back(values(a));
    return modules;
  }

  Modules feed_forward(const std::string& name) const {
    const std::int64_t hidden = rows_ * n_.feed;
    const std::string dense = name + ".DenseReluDense";
    const DType type = make_.computed_type();
    Module relu = make_.elementwise(dense + ".act", {hidden, {2}, type}, {hidden, {3}, type});
    relu.kept = make_.computed(hidden);  // its result
    // Under autocast it is cast to the weight's format and back, and then kept once more.
    const Operand operand = make_.casts() ? Operand::stored : Operand::kept;
    return {norm(name + ".layer_norm", Residual::goes_on),
            make_.linear(LinearKind::linear, rows_, n_.width, {{dense + ".wi", n_.feed}},
                         Operand::stored),
            relu,
            make_.linear(LinearKind::linear, rows_, n_.feed, {{dense + ".wo", n_.width}}, operand)};
  }

  /// The logits, through the table of the embeddings, and their loss.
  Modules head() const {
    const std::int64_t logits = rows_ * n_.vocabulary;
    // The width's root is the table's scale when it projects.
    const Module scale = make_.elementwise("lm_head.scale", {stream(), {2}}, {stream(), {2}});
    Module loss = class_cross_entropy(make_, "loss", rows_, n_.vocabulary);
    loss.kept = make_.stored(logits) + rows_ * Bytes{8};  // the result of log_softmax; the targets
    return {norm("decoder.final_layer_norm", Residual::ends), scale, x_.tied_projection("lm_head"),
            loss};
  }

 private:
  static TransformerShape inner_shape(const T5Numbers& n) {
    TransformerShape shape;
    shape.family = TransformerShape::Family::llama;  // for its norm
    shape.d_model = static_cast<int>(n.width);
    shape.d_ff = static_cast<int>(n.feed);
    shape.heads = static_cast<int>(n.heads);
    shape.vocabulary = static_cast<int>(n.vocabulary);
    return shape;
  }
  static WorkloadSize sized(WorkloadSize size, std::int64_t length) {
    size.sequence = static_cast<int>(length);
    return size;
  }

  std::int64_t elements(std::int64_t tokens) const { return n_.batch * tokens * n_.inner; }
  std::int64_t score_elements(const T5Attention& a) const {
    return n_.batch * n_.heads * a.queries * a.keys;
  }
  /// Softmax works in fp32: in a narrower format its result is cast, and kept in both.
  bool casts_scores() const { return make_.computed(1) < Bytes{4}; }

  Module scores(const T5Attention& a) const {
    const std::int64_t each = n_.batch * n_.heads, all = score_elements(a);
    const std::int64_t asked = elements(a.queries), answered = elements(a.keys);
    const std::string name = a.name + ".scores";
    Module module;
    // Every head's rows are copied so that they lie together, and their gradients back.
    const DType type = make_.computed_type();
    const std::vector<EagerKernels> copies{{asked, {strided(2)}, type},
                                           {answered, {strided(2)}, type}};
    module.forward = {
        make_.eager(name + ".split", copies),
        make_.gemm(name, {a.queries, a.keys, n_.head_size, each}, {2, Call::product, true})};
    module.backward = {make_.gemm(name + ".grad_query", {a.queries, n_.head_size, a.keys, each},
                                  {1, Call::product, true}, Pass::backward),
                       make_.gemm(name + ".grad_key", {a.keys, n_.head_size, a.queries, each},
                                  {0, Call::product, true}, Pass::backward),
                       make_.eager(name + ".merge", copies, Pass::backward)};
    module.kept = make_.computed(asked + answered);
    module.forward_working = make_.computed(all + asked + answered);
    module.backward_working = make_.computed(all + 2 * (asked + answered));
    return module;
  }

  /// The bias of the whole stack: a bucket for every pair of positions, its row of the table, the
  /// mask of every sample added.
  Module relative_bias(const T5Attention& a) const {
    const std::int64_t pairs = a.queries * a.keys;
    const std::string name = a.name + ".relative_attention_bias";
    // Positions (two ranges, difference); sign and magnitude of far ones; near or far; where.
    const std::vector<EagerKernel> buckets{0, 0, 1, 2, 2, 2, 2, 2, 2, 2,
                                           2, 2, 2, 2, 2, 2, 1, 3, 4, 3};
    Module module;
    module.forward = {make_.eager(name, {{2 * pairs, buckets},  // of indices, 8 bytes each
                                         {n_.heads * pairs, {2}},
                                         {score_elements(a), {strided(1)}}})};
    // Summed over the samples; fill, sort and add up as an embedding's.
    module.backward = {make_.eager(
        name + ".grad",
        {{score_elements(a), {sum_of_rows(1, n_.batch, n_.heads * pairs)}},
         {n_.heads * pairs,
          {fill(0), follows(0), follows({3, PatternKind::embedding_sum, pairs, n_.heads})}}},
        Pass::backward)};
    module.parameters = {make_.parameter(name + ".weight", {n_.buckets, n_.heads})};
    module.kept = pairs * Bytes{8};  // the buckets
    module.forward_working = make_.stored(n_.heads * pairs) + pairs * Bytes{24};
    module.backward_working = make_.stored(n_.heads * pairs);
    return module;
  }

  /// Zeros and the mask, likewise for the whole stack; nothing of it is trained.
  Module mask_bias(const T5Attention& a) const {
    Module module;
    module.forward = {make_.eager(
        a.name + ".mask", {{n_.heads * a.queries * a.keys, {1}}, {score_elements(a), {1}}})};
    return module;
  }

  Module softmax(const T5Attention& a) const {
    const std::int64_t all = score_elements(a), rows = all / a.keys;
    const auto kernel = [&](double passes) {
      return of(Call::softmax, {passes, PatternKind::softmax, rows, a.keys});
    };
    EagerKernels backward{all, {eager::backward(kernel(3))}};
    // The bias's gradient is that of the scores, added to what later blocks gave.
    if (a.trained_bias && !a.last) backward.passes.push_back(again(3));
    Module module = make_.elementwise(a.name + ".softmax", {all, {3, kernel(2)}}, backward);
    module.kept = all * Bytes{4};
    return module;
  }

  Module values(const T5Attention& a) const {
    const std::int64_t each = n_.batch * n_.heads, all = score_elements(a);
    const std::int64_t asked = elements(a.queries), answered = elements(a.keys);
    const std::string name = a.name + ".values";
    Module module;
    const DType type = make_.computed_type();
    const EagerKernels of_values{answered, {strided(2)}, type},
        of_result{asked, {strided(2)}, type};
    module.forward = {
        make_.eager(name + ".split", {of_values}),
        make_.gemm(name, {a.queries, n_.head_size, a.keys, each}, {1, Call::product, true}),
        make_.eager(name + ".merge", {of_result})};
    module.backward = {make_.eager(name + ".merge.grad", {of_result}, Pass::backward),
                       make_.gemm(name + ".grad_weights", {a.queries, a.keys, n_.head_size, each},
                                  {2, Call::product, true}, Pass::backward),
                       make_.gemm(name + ".grad_value", {a.keys, n_.head_size, a.queries, each},
                                  {0, Call::product, true}, Pass::backward),
                       make_.eager(name + ".split.grad", {of_values}, Pass::backward)};
    module.kept = make_.computed(answered);
    if (casts_scores()) module.kept += make_.computed(all);
    module.forward_working = make_.computed(2 * asked);
    module.backward_working = make_.computed(all + asked + 2 * answered);
    return module;
  }

  T5Numbers n_;
  ModuleMaker make_;
  std::int64_t rows_;
  TransformerModules x_;
};

/// T5Attention and T5LayerNorm, whose parameters are registered in this order.
void register_attention(std::vector<std::string>& names, const std::string& layer,
                        const std::string& attention) {
  for (const char* part : {"q", "k", "v", "o", "relative_attention_bias"})
    names.push_back(fmt::format("{}.{}.{}", layer, attention, part));
  names.push_back(layer + ".layer_norm");
}
void register_feed_forward(std::vector<std::string>& names, const std::string& layer) {
  names.insert(names.end(),
               {layer + ".DenseReluDense.wi", layer + ".DenseReluDense.wo", layer + ".layer_norm"});
}

struct Place {
  bool first, last;  ///< of its stack
};

Modules self_attention(const T5Stack& stack, std::int64_t tokens, Place place) {
  const std::string name = "layer.0.SelfAttention";
  Modules modules{stack.norm("layer.0.layer_norm", Residual::goes_on), stack.query_key_value(name)};
  append(modules, stack.attention({name, tokens, tokens, true, place.first, place.last}));
  modules.push_back(stack.output(name));
  modules.push_back(stack.shared().add("layer.0.residual"));
  return modules;
}

Modules encoder_block(const T5Stack& encoder, const T5Numbers& n, Place place) {
  Modules modules = self_attention(encoder, n.source, place);
  append(modules, encoder.feed_forward("layer.1"));
  return modules;
}

Modules decoder_block(const T5Stack& decoder, const T5Stack& encoder, const T5Numbers& n,
                      Place place) {
  Modules modules = self_attention(decoder, n.target, place);
  const T5Attention cross{
      "layer.1.EncDecAttention", n.target, n.source, false, place.first, place.last};
  modules.push_back(decoder.norm("layer.1.layer_norm", Residual::goes_on));
  modules.push_back(decoder.query(cross.name));
  append(modules, decoder.key_value_of(encoder, cross));
  append(modules, decoder.attention(cross));
  modules.push_back(decoder.output(cross.name));
  modules.push_back(decoder.shared().add("layer.1.residual"));
  append(modules, decoder.feed_forward("layer.2"));
  return modules;
}

/// What is there during all of a stack, beside what its modules take.
struct Held {
  Bytes forward, backward;
};
void hold(Modules& modules, const Held& held) {
  for (Module& module : modules) {
    module.forward_working += held.forward;
    module.backward_working += held.backward;
  }
}

void check_shape(const T5Shape& shape, const WorkloadSize& size) {
  require_positive(shape.layers, "layers");
  require_positive(shape.d_model, "d_model");
  require_positive(shape.d_ff, "d_ff");
  require_positive(shape.heads, "heads");
  require_positive(shape.vocabulary, "vocabulary");
  require_positive(shape.position_buckets, "position_buckets");
  require_positive(size.batch, "batch");
  require_positive(size.sequence, "sequence");
  const auto not_negative = [](std::int64_t value, const char* what) {
    if (value < 0)
      throw std::invalid_argument(fmt::format("{} must not be negative, got {}", what, value));
  };
  not_negative(shape.decoder_layers, "decoder_layers");
  not_negative(shape.head_size, "head_size");
  not_negative(shape.decoder_sequence, "decoder_sequence");
  if (shape.head_size == 0 && shape.d_model % shape.heads != 0)
    throw std::invalid_argument(
        fmt::format("{} heads do not divide a d_model of {}", shape.heads, shape.d_model));
  const T5Numbers n = numbers_of(shape, size);
  const std::int64_t widest = std::max({n.width, n.inner, n.feed, n.vocabulary});
  const std::int64_t longest = std::max(n.source, n.target);
  require_countable("a weight", {3, std::max(n.width, n.inner), widest});
  require_countable("an activation", {n.batch, longest, 3, widest});
  require_countable("the attention scores", {n.batch, n.heads, longest, longest});
}

}  // namespace

Workload t5_workload(const T5Shape& shape, const WorkloadSize& size) {
  check_shape(shape, size);
  const T5Numbers n = numbers_of(shape, size);
  const ModuleMaker make(size.dtype, size.compute);
  const T5Stack encoder(n, make, size, n.source), decoder(n, make, size, n.target);
  const int decoder_layers = shape.decoder_layers > 0 ? shape.decoder_layers : shape.layers;

  // The table's gradient is there from the head's backward on. The masked biases of a stack, and
  // backward the gradients they gather, are there for all of it; so is, while the decoder runs
  // backward, the gradient that the encoder's result gathers.
  const Bytes table = make.stored(n.vocabulary * n.width);
  const std::int64_t each = n.batch * n.heads;
  const Bytes source_bias = make.stored(each * n.source * n.source);
  const Bytes target_bias = make.stored(each * n.target * n.target);
  const Bytes cross_bias = make.stored(each * n.target * n.source);
  const Held in_encoder{source_bias, table + source_bias};
  const Held in_decoder{target_bias + cross_bias,
                        table + target_bias + make.stored(encoder.stream())};

  Workload workload;
  workload.source = "Hugging Face T5ForConditionalGeneration, eager attention, no dropout";

  Modules embedding{encoder.shared().tied_embedding("shared")};
  hold(embedding, {{}, table});
  append_layer(workload, "shared", "", embedding);

  std::vector<std::string> names;
  register_attention(names, "layer.0", "SelfAttention");
  register_feed_forward(names, "layer.1");
  const Module encoder_residual = encoder.shared().add("layer.1.residual");
  for (int i = 0; i < shape.layers; ++i) {
    Modules modules = encoder_block(encoder, n, {i == 0, i + 1 == shape.layers});
    if (i > 0) modules.insert(modules.begin(), encoder_residual);
    hold(modules, in_encoder);
    const std::string name = fmt::format("encoder.block.{}", i);
    append_layer(workload, name, name + ".", modules, {names.begin(), names.end()});
  }
  Modules end{encoder_residual, encoder.norm("encoder.final_layer_norm", Residual::ends)};
  hold(end, {{}, table});
  append_layer(workload, "encoder.end", "", end);

  // Its tokens are the targets, shifted. Its gradient is added to the head's.
  Modules start{decoder.shared().embedding("decoder.embed_tokens")};
  start.front().parameters.clear();
  start.front().backward.push_back(make.eager(
      "decoder.embed_tokens.tie", {{n.vocabulary * n.width, {again(3)}}}, Pass::backward));
  hold(start, {{}, table + table + make.stored(encoder.stream())});
  append_layer(workload, "decoder.embed_tokens", "", start);

  names.clear();
  register_attention(names, "layer.0", "SelfAttention");
  register_attention(names, "layer.1", "EncDecAttention");
  register_feed_forward(names, "layer.2");
  const Module decoder_residual = decoder.shared().add("layer.2.residual");
  for (int i = 0; i < decoder_layers; ++i) {
    Modules modules = decoder_block(decoder, encoder, n, {i == 0, i + 1 == decoder_layers});
    if (i > 0) modules.insert(modules.begin(), decoder_residual);
    hold(modules, in_decoder);
    const std::string name = fmt::format("decoder.block.{}", i);
    append_layer(workload, name, name + ".", modules, {names.begin(), names.end()});
  }
  Modules head = decoder.head();
  head.insert(head.begin(), decoder_residual);
  hold(head, {{}, table});
  append_layer(workload, "head", "", head);
  return workload;
}

}  // namespace ddpsim
