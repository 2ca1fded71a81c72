// A block of Llama whose feed-forward layer is one of several: a router chooses `experts_per_token`
// experts for every token. Each expert in turn gathers its tokens' rows, multiplies them, and adds
// what comes out, weighted, to the rows of the result. Source: transformers 4.36 to 4.57,
// modeling_mixtral.py, without the router's auxiliary loss, which is off by default.

#include "model/workload/mixtral.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/workload/checkpoints.hpp"
#include "model/workload/transformer_modules.hpp"

namespace ddpsim {
namespace {

using namespace eager;
constexpr std::string_view moe = "block_sparse_moe";

struct MixtralNumbers {
  std::int64_t tokens, width, inner, experts, chosen;
  std::int64_t stream() const { return tokens * width; }
  /// Tokens of an expert, all alike but for a remainder, which goes one each to the first ones.
  std::int64_t rows(std::int64_t expert) const {
    const std::int64_t all = tokens * chosen;
    return all / experts + (expert < all % experts ? 1 : 0);
  }
};

/// The router: a projection to a score for each expert, softmax in fp32, the largest scores, and
/// their shares of their sum. Its gradient is complete after those of all experts.
Modules router(const ModuleMaker& make, const MixtralNumbers& n) {
  const std::int64_t scores = n.tokens * n.experts, picked = n.tokens * n.chosen;
  Module gate = make.linear(LinearKind::linear, n.tokens, n.width,
                            {{fmt::format("{}.gate", moe), n.experts}}, Operand::stored);
  Module choice;
  // softmax, top-k, sum, divide; the one-hot mask of who goes where; the zeros of the result.
  choice.forward = {make.eager(fmt::format("{}.choice", moe),
                               {{scores, {2, 1}}, {picked, {1, 3, 0, 0}}, {n.stream(), {1}}})};
  // Divide (to the shares, to the sum), both paths added up, top-k (fill, scatter), softmax.
  choice.backward = {
      make.eager(fmt::format("{}.choice.grad", moe),
                 {{picked, {2, again(3), again(1), again(3)}}, {scores, {fill(1), follows(1), 3}}},
                 Pass::backward)};
  // Softmax's result in fp32; the chosen experts; shares before and sums after the division, fp32.
  choice.kept = (scores + picked + n.tokens) * Bytes{4} + picked * Bytes{8};
  choice.forward_working = make.stored(n.stream()) + scores * Bytes{8};
  choice.backward_working = scores * Bytes{8};
  return {gate, choice};
}

/// silu(w1 x) * w3 x through w2, of the rows that chose this expert.
Modules expert(const ModuleMaker& make, const MixtralNumbers& n, std::int64_t number) {
  const std::int64_t rows = n.rows(number), states = rows * n.width, hidden = rows * n.inner;
  const std::string name = fmt::format("{}.experts.{}", moe, number);
  Module gather;
  // Which tokens: nonzero elements of the mask (count, offsets, write); their rows.
  gather.forward = {make.eager(
      name + ".gather",
      {{rows, {0, follows(0), follows(0)}}, {states, {{2, PatternKind::gather, rows, n.width}}}})};
  // A gradient of all tokens: fill, sort the indices, add rows; then added to the other paths'.
  gather.backward = {make.eager(name + ".gather.grad",
                                {{n.stream(), {fill(1)}},
                                 {states, {follows(0), follows(0), follows(3)}},
                                 {n.stream(), {again(3)}}},
                                Pass::backward)};
  gather.kept = 2 * rows * Bytes{8};  // which tokens, and by which of their choices
  gather.forward_working = make.stored(states);
  gather.backward_working = make.stored(2 * n.stream() + states);

  const DType type = make.computed_type();
  Module activation = make.elementwise(name + ".swiglu", {hidden, {2, 3}, type},
                                       {hidden, {3, again(3), of(Call::gelu, 3)}, type});
  activation.kept = make.computed(3 * hidden);  // the gate, its silu, up

  Module scatter;
  // The shares of the rows, the product with them, the addition to the rows of the result.
  scatter.forward = {make.eager(name + ".scatter", {{rows, {0}}, {states, {2, 3}}})};
  // The rows' gradients; to the states; to the shares: product, sum, fill, scatter, add up.
  scatter.backward = {
      make.eager(name + ".scatter.grad",
                 {{states, {2, strided(2), again(3), again(reduced(1, rows, n.width))}},
                  {rows, {fill(0), follows(0), again(0)}}},
                 Pass::backward)};
  // What is weighted, and the weights; the product, of which index_add's derivative asks the shape.
  scatter.kept = make.computed(states) + make.stored(rows + states);
  scatter.forward_working = make.stored(n.stream() + states);
  scatter.backward_working = make.stored(2 * states);

  return {
      gather,
      make.linear(LinearKind::linear, rows, n.width,
                  {{name + ".w1", n.inner}, {name + ".w3", n.inner}}, Operand::stored),
      activation,
      make.linear(LinearKind::linear, rows, n.inner, {{name + ".w2", n.width}}, Operand::computed),
      scatter};
}

Modules block(const ModuleMaker& make, const TransformerModules& x, const MixtralNumbers& n) {
  using enum LinearKind;
  Modules modules{
      with_calls(x.rms_norm("input_layernorm", Residual::goes_on), 1),
      with_calls(
          x.query_key_value(linear, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), 1),
      x.halved_rope("self_attn.rope"),
      x.fused_attention("self_attn", Mask::causal),
      x.linear(linear, n.width, {"self_attn.o_proj", n.width}, Operand::kept),
      x.add("self_attn.residual"),
      x.rms_norm("post_attention_layernorm", Residual::goes_on),
  };
  const auto append = [&](Modules more) {
    modules.insert(modules.end(), more.begin(), more.end());
  };
  append(router(make, n));
  for (std::int64_t number = 0; number < n.experts; ++number) append(expert(make, n, number));
  return modules;
}

std::vector<std::string> registration(const MixtralNumbers& n) {
  std::vector<std::string> names;
  for (const char* part : {"q_proj", "k_proj", "v_proj", "o_proj"})
    names.push_back(fmt::format("self_attn.{}", part));
  names.push_back(fmt::format("{}.gate", moe));
  for (std::int64_t number = 0; number < n.experts; ++number)
    for (const char* part : {"w1", "w2", "w3"})
      names.push_back(fmt::format("{}.experts.{}.{}", moe, number, part));
  names.insert(names.end(), {"input_layernorm", "post_attention_layernorm"});
  return names;
}

void check_shape(const MixtralShape& shape, const WorkloadSize& size) {
  require_positive(shape.layers, "layers");
  require_positive(shape.d_model, "d_model");
  require_positive(shape.d_ff, "d_ff");
  require_positive(shape.heads, "heads");
  require_positive(shape.vocabulary, "vocabulary");
  require_positive(shape.experts, "experts");
  require_positive(shape.experts_per_token, "experts_per_token");
  require_positive(size.batch, "batch");
  require_positive(size.sequence, "sequence");
  const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
  if (shape.d_model % shape.heads != 0)
    refuse(fmt::format("{} heads do not divide a d_model of {}", shape.heads, shape.d_model));
  if (shape.kv_heads != 0) {
    require_positive(shape.kv_heads, "kv_heads");
    if (shape.heads % shape.kv_heads != 0)
      refuse(fmt::format("{} kv_heads do not divide {} heads", shape.kv_heads, shape.heads));
  }
  if (shape.experts_per_token > shape.experts)
    refuse(fmt::format("a token cannot take {} of {} experts", shape.experts_per_token,
                       shape.experts));
  const std::int64_t tokens = std::int64_t{size.batch} * size.sequence;
  if (tokens * shape.experts_per_token < shape.experts)
    refuse(fmt::format("{} tokens that take {} experts each leave some of {} experts without any",
                       tokens, shape.experts_per_token, shape.experts));
  const std::int64_t widest = std::max({shape.d_model, shape.d_ff, shape.vocabulary});
  require_countable("a block's experts", {3, shape.experts, shape.d_model, shape.d_ff});
  require_countable("a weight", {3, shape.d_model, widest});
  require_countable("an activation",
                    {size.batch, size.sequence, shape.experts_per_token, 3, widest});
  require_countable("the attention scores",
                    {size.batch, shape.heads, size.sequence, size.sequence});
}

}  // namespace

Workload mixtral_workload(const MixtralShape& shape, const WorkloadSize& size) {
  check_shape(shape, size);
  const MixtralNumbers n{std::int64_t{size.batch} * size.sequence, shape.d_model, shape.d_ff,
                         shape.experts, shape.experts_per_token};
  TransformerShape inner;
  inner.family = TransformerShape::Family::llama;
  inner.layers = shape.layers;
  inner.d_model = shape.d_model;
  inner.d_ff = shape.d_ff;
  inner.heads = shape.heads;
  inner.kv_heads = shape.kv_heads;
  inner.vocabulary = shape.vocabulary;
  const TransformerModules x(inner, size);
  const ModuleMaker make(size.dtype, size.compute);

  Workload workload;
  workload.source = "Hugging Face MixtralForCausalLM with fused attention, balanced experts";
  append_layer(workload, "embedding", "", {x.embedding("model.embed_tokens")});
  const std::vector<std::string> names = registration(n);
  const std::vector<std::string_view> order(names.begin(), names.end());
  Modules modules = block(make, x, n);
  const Module residual = x.add("block_sparse_moe.residual");
  for (int i = 0; i < shape.layers; ++i) {
    const std::string name = fmt::format("model.layers.{}", i);
    append_layer(workload, name, name + ".", modules, order);
    if (is_checkpoint(i, size.checkpointed))
      checkpoint_last_layer(workload, make.stored(n.stream()));
    // A block leaves its last addition to the stream to whoever reads the stream next.
    if (i == 0) modules.insert(modules.begin(), residual);
  }
  append_layer(
      workload, "head", "",
      {residual, x.rms_norm("model.norm", Residual::ends),
       x.linear(LinearKind::linear, n.width, {"lm_head", shape.vocabulary}, Operand::stored),
       x.causal_cross_entropy("loss")});
  return workload;
}

}  // namespace ddpsim
