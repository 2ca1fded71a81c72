#include "model/workload/transformer_modules.hpp"

#include "model/workload/attention.hpp"

namespace ddpsim {

TransformerModules::TransformerModules(const TransformerShape& shape, const WorkloadSize& size)
    : make_(size.dtype, size.compute),
      batch_(size.batch),
      sequence_(size.sequence),
      d_model_(shape.d_model),
      d_ff_(shape.d_ff),
      heads_(shape.heads),
      kv_heads_(shape.kv_heads == 0 ? shape.heads : shape.kv_heads),
      vocabulary_(shape.vocabulary),
      positions_(shape.positions),
      head_size_(d_model_ / heads_),
      tokens_(batch_ * sequence_),
      stream_(tokens_ * d_model_),
      keys_(tokens_ * kv_heads_ * head_size_),
      hidden_(tokens_ * d_ff_),
      scores_(batch_ * heads_ * sequence_ * sequence_),
      logits_(tokens_ * vocabulary_),
      wide_norm_(shape.family == TransformerShape::Family::cs336) {}

namespace {

/// Tensors of fp32, or of indices, whatever the model is stored in.
Bytes fp32(std::int64_t elements) {
  return elements * Bytes{4};
}
Bytes indices(std::int64_t elements) {
  return elements * Bytes{8};
}

}  // namespace

// --- embeddings ---

/// Forward gathers rows; backward fills a gradient of the whole table, sorts the indices, adds up
/// rows.
Module TransformerModules::table(const std::string& name, std::int64_t rows,
                                 std::int64_t gathered) const {
  Module module;
  module.forward = {make_.eager(name, {{gathered * d_model_, {2}}})};
  module.backward = {
      make_.eager(name + ".grad", {{rows * d_model_, {1}}, {gathered * d_model_, {0, 3}}})};
  module.parameters = {make_.parameter(name + ".weight", {rows, d_model_})};
  module.kept = indices(gathered);
  module.forward_working = module.backward_working = make_.stored(gathered * d_model_);
  return module;
}

Module TransformerModules::embedding(const std::string& name) const {
  return table(name, vocabulary_, tokens_);
}

Module TransformerModules::small_embedding(const std::string& name, std::int64_t rows) const {
  return table(name, rows, tokens_);
}

Module TransformerModules::tied_embedding(const std::string& name) const {
  Module module = embedding(name);
  module.backward.push_back(make_.eager(name + ".tie", {{vocabulary_ * d_model_, {3}}}));
  module.parameters.front().ready_after = 1;
  return module;
}

Module TransformerModules::position_embedding(const std::string& name) const {
  Module module = table(name, positions_, sequence_);
  module.forward.push_back(make_.eager(name + ".add", {{stream_, {3}}}));
  // The gradient is summed over the batch before it reaches the table.
  module.backward.insert(module.backward.begin(), make_.eager(name + ".sum", {{stream_, {1}}}));
  module.parameters.front().ready_after = 1;
  return module;
}

// --- the residual stream and its norms ---

Module TransformerModules::add(const std::string& name) const {
  return make_.elementwise(name, {stream_, {3}}, {});
}

Module TransformerModules::fork(const std::string& name) const {
  return make_.fork(name, stream_);
}

Module TransformerModules::rms_norm(const std::string& name, Residual stream) const {
  // Passes over x in fp32, in the format it comes in, and of the casts between the two.
  const std::int64_t widened = stream_ * 4 / make_.stored(1).count;
  const auto wide = [&](std::vector<int> passes) {
    return EagerKernels{widened, std::move(passes)};
  };
  const auto narrow = [&](std::vector<int> passes) {
    return EagerKernels{stream_, std::move(passes)};
  };
  const bool casts = widened != stream_;
  const EagerKernels cast{stream_ + widened, casts ? std::vector{1} : std::vector<int>{}};
  // The gain multiplies in fp32, or what was cast back.
  const auto gain = [&](std::vector<int> passes) {
    return wide_norm_ ? wide(std::move(passes)) : narrow(std::move(passes));
  };
  Module module;
  // square, mean, + eps, rsqrt, x * r; * gain
  module.forward = {make_.eager(name, {cast, wide({2, 1, 0, 0, 2}), gain({2}), cast})};
  std::vector<EagerKernels> backward{
      gain({2, 3, 1}),     // * gain: to its input, to the gain (product, sum over tokens)
      cast,                //
      wide({3, 2, 1,       // x * r: to x and to r (product, sum over the row)
            0, 0, 0,       // rsqrt: r^3, * -1/2, * gradient
            1,             // mean: spread over the row
            2, 2, 3, 3}),  // square: x^1, * 2, * gradient; both paths to x added up
      cast};
  if (stream == Residual::goes_on) backward.push_back(narrow({3}));
  module.backward = {make_.eager(name + ".grad", backward)};
  module.forward_working = make_.stored(stream_);
  module.backward_working = make_.stored(2 * stream_);
  module.parameters = {make_.parameter(name + ".weight", {d_model_})};
  // x in fp32, 1/rms of every row, and x / rms: in fp32, or as Llama hands it to the gain.
  module.kept = fp32(stream_ + tokens_) + (wide_norm_ ? fp32(stream_) : make_.stored(stream_));
  return module;
}

Module TransformerModules::layer_norm(const std::string& name, Residual stream) const {
  // One kernel each for: the result; the gradient of the input; those of weight and bias.
  EagerKernels backward{stream_, {3, 2}};
  if (stream == Residual::goes_on) backward.passes.push_back(3);
  Module module = make_.elementwise(name, {stream_, {2}}, backward);
  module.parameters = {make_.parameter(name + ".weight", {d_model_}),
                       make_.parameter(name + ".bias", {d_model_})};
  module.kept = make_.stored(stream_) + fp32(2 * tokens_);  // its input; mean and deviation of rows
  return module;
}

// --- attention ---

Module TransformerModules::query_key_value(LinearKind kind, const std::string& query,
                                           const std::string& key, const std::string& value) const {
  const std::int64_t kv_width = kv_heads_ * head_size_;
  return make_.linear(kind, tokens_, d_model_,
                      {{query, d_model_}, {key, kv_width}, {value, kv_width}}, Operand::stored);
}

Module TransformerModules::paired_rope(const std::string& name) const {
  // Halves: even and odd elements. Index arithmetic, gather cos and sin, products, -, +, stack.
  const std::vector<int> rotate{0, 0, 0, 2, 2, 2, 2, 3, 3, 4};
  // Each half of the input has two uses: product, product; -, product, +; product, +; stack.
  const std::vector<int> rotate_back{2, 2, 2, 2, 3, 2, 3, 4};
  const std::vector<int> mask{0, 0, 0, 0, 0};  // positions, indices, compare, broadcast, -infinity
  Module module;
  module.forward = {make_.eager(
      name, {{stream_ / 2, rotate}, {keys_ / 2, rotate}, {sequence_, mask}, {keys_, {2}}})};
  // Back from heads to tokens: a copy each of the gradients of queries, keys and values.
  module.backward = {make_.eager(
      name + ".grad",
      {{stream_ / 2, rotate_back}, {keys_ / 2, rotate_back}, {stream_, {2}}, {keys_, {2, 2}}})};
  module.kept = fp32(2 * sequence_ * head_size_);  // the gathered tables, of queries and of keys
  module.forward_working = module.backward_working = make_.stored(2 * (stream_ + keys_));
  return module;
}

Module TransformerModules::halved_rope(const std::string& name) const {
  const std::vector<int> rotate{2, 1, 2, 2, 3};  // x * cos, -half, concatenate, * sin, +
  // * sin; two slices (fill, copy half) around -half; their sum; * cos; the sum of both paths
  const std::vector<int> rotate_back{2, 1, 1, 1, 1, 1, 3, 2, 3};
  Module module;
  module.forward = {make_.eager(name, {{stream_, rotate}, {keys_, rotate}})};
  module.backward = {make_.eager(name + ".grad", {{stream_, rotate_back}, {keys_, rotate_back}})};
  module.forward_working = module.backward_working = make_.stored(2 * (stream_ + keys_));
  return module;
}

Module TransformerModules::eager_scores(const std::string& name) const {
  const Gemm product{sequence_, sequence_, head_size_, batch_ * heads_};
  const Gemm gradient{sequence_, head_size_, sequence_, batch_ * heads_};
  Module module;
  module.forward = {make_.gemm(name, product)};
  module.backward = {make_.gemm(name + ".grad_query", gradient),
                     make_.gemm(name + ".grad_key", gradient)};
  module.kept = make_.computed(stream_ + keys_);
  module.forward_working = make_.computed(scores_);
  module.backward_working = make_.computed(scores_ + stream_ + keys_);
  return module;
}

Module TransformerModules::eager_softmax(const std::string& name) const {
  Module module =
      make_.elementwise(name,
                        // / sqrt(d), mask, max, -, exp, sum, /
                        {scores_, {2, 2, 1, 2, 2, 1, 2}},
                        {scores_,
                         {2, 2, 2, 3, 2, 1,  // e / sum: to e; to the sum (/, -, *, /, sum)
                          2, 3,              // both paths to e added up; exp
                          2, 1, 1, 0, 3,     // x - max: -, sum, fill, scatter; both paths added up
                          0, 2, 2}});        // mask (zero, where); / sqrt(d)
  // The exponentials; of every row the place of its maximum and its sum; the mask, a byte each. The
  // result is kept by the product with the values.
  const std::int64_t rows = batch_ * heads_ * sequence_;
  module.kept = make_.stored(scores_ + rows) + indices(rows) + Bytes{sequence_ * sequence_};
  module.forward_working = make_.stored(2 * scores_);
  module.backward_working = make_.stored(3 * scores_);
  return module;
}

Module TransformerModules::eager_values(const std::string& name) const {
  const Gemm product{sequence_, head_size_, sequence_, batch_ * heads_};
  const Gemm to_weights{sequence_, sequence_, head_size_, batch_ * heads_};
  Module module;
  // Then the heads are copied side by side.
  module.forward = {make_.gemm(name, product), make_.eager(name + ".merge", {{stream_, {2}}})};
  module.backward = {make_.eager(name + ".split", {{stream_, {2}}}),
                     make_.gemm(name + ".grad_weights", to_weights),
                     make_.gemm(name + ".grad_value", product)};
  module.kept = make_.computed(scores_ + keys_);
  module.forward_working = make_.computed(2 * stream_);
  module.backward_working = make_.computed(scores_ + stream_ + keys_);
  return module;
}

Module TransformerModules::fused_attention(const std::string& name, Mask mask) const {
  Attention attention{.batch = batch_,
                      .heads = heads_,
                      .queries = sequence_,
                      .keys = sequence_,
                      .size = head_size_,
                      .causal = mask == Mask::causal};
  const std::int64_t rows = tokens_ * heads_;
  // Queries, keys, values and the result; of every row the logarithm of its sum, in fp32.
  Kernel forward = make_.gemm(name, fused_attention_gemm(attention), 0);
  forward.traffic = make_.computed(2 * (stream_ + keys_)) + fp32(rows);
  attention.backward = true;
  // These and their gradients. Three kernels: the product of result and gradient by rows, the
  // gradients, and that of the queries from its sum in fp32. Source: PyTorch's
  // flash_bwd_launch_template.h.
  Kernel backward = make_.gemm(name + ".grad", fused_attention_gemm(attention), 0);
  backward.traffic = make_.computed(4 * (stream_ + keys_) + stream_) + fp32(3 * rows + 2 * stream_);
  backward.launches = 3;
  backward.followers = 2;
  Module module;
  module.forward = {forward};
  module.backward = {backward};
  // Queries, keys, values and the result; the logarithm of every row's sum, in fp32. Source:
  // PyTorch's derivatives.yaml, _scaled_dot_product_flash_attention.
  module.kept = make_.computed(2 * (stream_ + keys_)) + fp32(tokens_ * heads_);
  module.forward_working = make_.computed(stream_);
  module.backward_working = make_.computed(2 * (stream_ + keys_));
  return module;
}

// --- projections and activations ---

Module TransformerModules::linear(LinearKind kind, std::int64_t in, const Projection& projection,
                                  Operand operand) const {
  return make_.linear(kind, tokens_, in, {projection}, operand);
}

Module TransformerModules::gate_and_up(LinearKind kind, const std::string& gate,
                                       const std::string& up) const {
  return make_.linear(kind, tokens_, d_model_, {{gate, d_ff_}, {up, d_ff_}}, Operand::stored);
}

Module TransformerModules::eager_swiglu(const std::string& name) const {
  // sigmoid, x * sigmoid, * up; backward two products for either *, sigmoid, both paths added up.
  Module module = make_.elementwise(name, {hidden_, {2, 3, 3}}, {hidden_, {3, 3, 3, 3, 3, 3}});
  module.kept = make_.computed(4 * hidden_);  // the gate, its sigmoid, their product, up
  return module;
}

Module TransformerModules::swiglu(const std::string& name) const {
  Module module = make_.elementwise(name, {hidden_, {2, 3}}, {hidden_, {3, 3, 3}});
  module.kept = make_.computed(3 * hidden_);  // the gate, its silu, up
  return module;
}

Module TransformerModules::gelu(const std::string& name) const {
  Module module = make_.elementwise(name, {hidden_, {2}}, {hidden_, {3}});
  module.kept = make_.computed(hidden_);  // its input
  return module;
}

Module TransformerModules::tanh_gelu(const std::string& name) const {
  Module module =
      make_.elementwise(name,
                        // * 0.5, ^3, * 0.044715, +, * sqrt(2/pi), tanh, + 1, *
                        {hidden_, {2, 2, 2, 3, 2, 2, 2, 3}},
                        {hidden_,
                         {3, 3,           // the last *, to both sides
                          3, 2,           // tanh, * sqrt(2/pi)
                          2, 2, 2, 3, 3,  // * 0.044715; ^3: x^2, * 3, * gradient; added to +'s x
                          2, 3}});        // * 0.5; all paths to x added up
  // x / 2 for the last product; in fp32 under autocast x for ^3, tanh's result, and that + 1.
  module.kept = make_.computed(hidden_) + make_.stored(3 * hidden_);
  return module;
}

// --- heads ---

Module TransformerModules::tied_projection(const std::string& name) const {
  Module module =
      make_.linear(LinearKind::linear, tokens_, d_model_, {{name, vocabulary_}}, Operand::stored);
  module.parameters.clear();
  return module;
}

Module TransformerModules::eager_cross_entropy(const std::string& name) const {
  Module module =
      make_.elementwise(name,
                        // max, -, exp, sum, log, -, negate, gather, mean
                        {logits_, {1, 2, 2, 1, 0, 2, 2, 0, 0}},
                        {logits_,
                         {0, 0, 1, 0,        // one, mean, gather (fill, scatter)
                          2, 2, 1,           // negate; x - log: to the log (-, sum)
                          0, 2, 3,           // log, exp; both paths to x - max added up
                          2, 1, 1, 0, 3}});  // x - max: -, sum, fill, scatter; both paths added up
  // The exponentials, and what is gathered from; the place of every row's maximum, and its target.
  // Beside them the training loop holds the logits, and forward there are the logarithms; backward
  // the gradients of the result, of the exponentials, and their sum.
  module.kept = make_.stored(2 * logits_) + indices(2 * tokens_);
  module.forward_working = make_.stored(2 * logits_);
  module.backward_working = make_.stored(4 * logits_);
  return module;
}

Module TransformerModules::causal_cross_entropy(const std::string& name) const {
  Module module = make_.elementwise(
      name, {logits_, {2, 0, 2, 0}},  // shift logits and labels, log_softmax, nll_loss
      // nll_loss (fill, scatter), log_softmax, the shift (fill, copy)
      {logits_, {1, 0, 3, 1, 2}});
  // log_softmax's result, in fp32 whatever the logits are; the targets. Forward the logits and the
  // shifted copy are there beside it; backward the gradients of result and input.
  module.kept = fp32(logits_) + indices(tokens_);
  module.forward_working = make_.computed(logits_) + fp32(logits_);
  module.backward_working = fp32(2 * logits_);
  return module;
}

std::vector<Module> TransformerModules::pooler(const std::string& name) const {
  const std::int64_t elements = batch_ * d_model_;
  // The first tokens are a view; its gradient is a fill of the whole stream and a copy of a row.
  // Kept for the projection, the view keeps the whole stream, unless autocast copies the row.
  Module first = make_.elementwise(name + ".first_token", {}, {stream_, {1, 0}});
  first.kept = make_.casts() ? make_.computed(elements) : make_.stored(stream_);
  Module dense = make_.linear(LinearKind::biased, batch_, d_model_, {{name + ".dense", d_model_}},
                              Operand::kept);
  Module tanh = make_.elementwise(name + ".tanh", {elements, {2}}, {elements, {3}});
  tanh.kept = make_.computed(elements);
  return {first, dense, tanh};
}

}  // namespace ddpsim
