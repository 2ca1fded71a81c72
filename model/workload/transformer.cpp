// A family is a recipe: the modules of its embeddings, its block and its head, in forward order
// and by PyTorch's names. All else follows: backward is the reverse, a gradient is ready after the
// kernel that computes it, and counts are sums over the recipe.
//
// How well eager kernels are counted: a block of the CS336 course model launches 60 forward and 100
// backward here. Nsight Systems counted 52 and 100 on torch 2.11, for a version of the course's
// code whose rotary tables and mask take 8 launches fewer forward. Source: GPU_RUN_REPORT.md of
// github.com/yqH1007/CS336_assignment2 at 74d32be, medium model, 24 blocks x 5 steps; the backward
// figure is that of the full step less forward and the optimizer's kernels for 219 tensors.

#include "model/workload/transformer.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/checkpoints.hpp"
#include "model/workload/transformer_modules.hpp"

namespace ddpsim {
namespace {

using ModuleNames = std::vector<std::string_view>;

struct Recipe {
  std::string source;
  Modules embedding;
  std::string blocks;  ///< what precedes a block's number: "layers."
  Modules block;
  Modules head;
  /// A pre-norm block leaves its last addition to the stream to whoever reads the stream next.
  std::optional<Module> between;
  ModuleNames embedding_registration;  ///< empty, here and below: in the order of the modules
  ModuleNames block_registration;
};

/// Stanford CS336's BasicsTransformerLM: every operator is a kernel of its own.
Recipe cs336(const TransformerShape& shape, const TransformerModules& x) {
  using enum LinearKind;
  using enum Operand;
  const std::int64_t d = shape.d_model;
  return {
      .source = "the CS336 course model on eager PyTorch",
      .embedding = {with_calls(x.embedding("token_embeddings"), 1)},
      .blocks = "layers.",
      .block =
          {
              with_calls(x.rms_norm("ln1", Residual::goes_on), 1),
              with_calls(x.query_key_value(einsum, "attn.q_proj", "attn.k_proj", "attn.v_proj"), 1),
              x.paired_rope("attn.rope"),
              x.eager_scores("attn.scores"),
              x.eager_softmax("attn.softmax"),
              x.eager_values("attn.values"),
              x.linear(einsum, d, {"attn.output_proj", d}, computed),
              x.add("attn.residual"),
              x.rms_norm("ln2", Residual::goes_on),
              with_calls(x.gate_and_up(einsum, "ffn.w1", "ffn.w3"), 1),
              x.eager_swiglu("ffn.swiglu"),
              x.linear(einsum, shape.d_ff, {"ffn.w2", d}, computed),
          },
      .head =
          {
              x.rms_norm("ln_final", Residual::ends),
              x.linear(einsum, d, {"lm_head", shape.vocabulary}, stored),
              x.eager_cross_entropy("loss"),
          },
      .between = x.add("ffn.residual"),
      .embedding_registration = {},
      .block_registration = {"ln1", "attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.output_proj",
                             "ln2", "ffn.w1", "ffn.w2", "ffn.w3"},
  };
}

/// Hugging Face's LlamaForCausalLM.
Recipe llama(const TransformerShape& shape, const TransformerModules& x) {
  using enum LinearKind;
  using enum Operand;
  const std::int64_t d = shape.d_model;
  return {
      .source = "Hugging Face LlamaForCausalLM with fused attention",
      .embedding = {with_calls(x.embedding("model.embed_tokens"), 2)},
      .blocks = "model.layers.",
      .block =
          {
              with_calls(x.rms_norm("input_layernorm", Residual::goes_on), 1),
              with_calls(x.query_key_value(linear, "self_attn.q_proj", "self_attn.k_proj",
                                           "self_attn.v_proj"),
                         1),
              x.halved_rope("self_attn.rope"),
              x.fused_attention("self_attn", Mask::causal),
              x.linear(linear, d, {"self_attn.o_proj", d}, kept),
              x.add("self_attn.residual"),
              x.rms_norm("post_attention_layernorm", Residual::goes_on),
              with_calls(x.gate_and_up(linear, "mlp.gate_proj", "mlp.up_proj"), 1),
              x.swiglu("mlp.swiglu"),
              x.linear(linear, shape.d_ff, {"mlp.down_proj", d}, computed),
          },
      .head =
          {
              x.rms_norm("model.norm", Residual::ends),
              x.linear(linear, d, {"lm_head", shape.vocabulary}, stored),
              x.causal_cross_entropy("loss"),
          },
      .between = x.add("mlp.residual"),
      .embedding_registration = {},
      .block_registration = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                             "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
                             "input_layernorm", "post_attention_layernorm"},
  };
}

/// Hugging Face's GPT2LMHeadModel. Its lm_head is the token table: that gradient is complete only
/// when the embedding's own is, at the very end of backward.
Recipe gpt2(const TransformerShape& shape, const TransformerModules& x) {
  using enum LinearKind;
  using enum Operand;
  const std::int64_t d = shape.d_model;
  const bool is_fused = shape.activation == TransformerShape::Activation::gelu;
  return {
      .source = "Hugging Face GPT2LMHeadModel with fused attention, without dropout",
      .embedding = {with_calls(x.tied_embedding("transformer.wte"), 2, 1),
                    x.position_embedding("transformer.wpe")},
      .blocks = "transformer.h.",
      .block =
          {
              with_calls(x.layer_norm("ln_1", Residual::goes_on), 1),
              with_calls(x.linear(conv1d, d, {"attn.c_attn", 3 * d}, stored), 1),
              x.gathered_gradients("attn.cat"),
              with_calls(x.fused_attention("attn", Mask::causal), 0, 10),
              x.linear(conv1d, d, {"attn.c_proj", d}, kept),
              with_calls(x.add("attn.residual"), 1),
              x.layer_norm("ln_2", Residual::goes_on),
              with_calls(x.linear(conv1d, d, {"mlp.c_fc", shape.d_ff}, stored), 1),
              is_fused ? x.gelu("mlp.act") : x.tanh_gelu("mlp.act"),
              x.linear(conv1d, shape.d_ff, {"mlp.c_proj", d}, is_fused ? computed : stored),
          },
      .head =
          {
              x.layer_norm("transformer.ln_f", Residual::ends),
              x.tied_projection("lm_head"),
              x.causal_cross_entropy("loss"),
          },
      .between = with_calls(x.add("mlp.residual"), 1),
      .embedding_registration = {},
      .block_registration = {},
  };
}

/// Hugging Face's BertModel: norms follow the additions, and a pooler stands in for head and loss.
Recipe bert(const TransformerShape& shape, const TransformerModules& x) {
  using enum LinearKind;
  using enum Operand;
  const std::int64_t d = shape.d_model;
  const std::string attention = "attention.self";
  return {
      .source = "Hugging Face BertModel with pooler and fused attention, without dropout",
      .embedding =
          {
              with_calls(x.embedding("embeddings.word_embeddings"), 2, 2),
              x.small_embedding("embeddings.token_type_embeddings", 2),
              x.sum("embeddings.add"),
              x.position_embedding("embeddings.position_embeddings"),
              x.layer_norm("embeddings.LayerNorm", Residual::ends),
          },
      .blocks = "encoder.layer.",
      .block =
          {
              x.fork("attention"),
              with_calls(x.query_key_value(biased, attention + ".query", attention + ".key",
                                           attention + ".value"),
                         3),
              with_calls(x.fused_attention(attention, Mask::none), 0, 9),
              with_calls(x.linear(biased, d, {"attention.output.dense", d}, kept), 1),
              with_calls(x.add("attention.output.residual"), 1),
              x.layer_norm("attention.output.LayerNorm", Residual::ends),
              x.fork("intermediate"),
              with_calls(x.linear(biased, d, {"intermediate.dense", shape.d_ff}, stored), 1),
              x.gelu("intermediate.gelu"),
              with_calls(x.linear(biased, shape.d_ff, {"output.dense", d}, computed), 1),
              with_calls(x.add("output.residual"), 1),
              x.layer_norm("output.LayerNorm", Residual::ends),
          },
      .head = x.pooler("pooler"),
      .between = std::nullopt,
      .embedding_registration = {"embeddings.word_embeddings", "embeddings.position_embeddings",
                                 "embeddings.token_type_embeddings", "embeddings.LayerNorm"},
      .block_registration = {},
  };
}

Recipe recipe_of(const TransformerShape& shape, const TransformerModules& modules) {
  switch (shape.family) {
    case TransformerShape::Family::cs336:
      return cs336(shape, modules);
    case TransformerShape::Family::llama:
      return llama(shape, modules);
    case TransformerShape::Family::gpt2:
      return gpt2(shape, modules);
    case TransformerShape::Family::bert:
      return bert(shape, modules);
  }
  throw std::invalid_argument("unknown transformer family");
}

void check_shape(const TransformerShape& shape, const WorkloadSize& size) {
  using Family = TransformerShape::Family;
  require_positive(shape.layers, "layers");
  require_positive(shape.d_model, "d_model");
  require_positive(shape.d_ff, "d_ff");
  require_positive(shape.heads, "heads");
  require_positive(shape.vocabulary, "vocabulary");
  require_positive(size.batch, "batch");
  require_positive(size.sequence, "sequence");
  const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
  if (shape.d_model % shape.heads != 0)
    refuse(fmt::format("{} heads do not divide a d_model of {}", shape.heads, shape.d_model));
  if (shape.kv_heads != 0) {
    require_positive(shape.kv_heads, "kv_heads");
    if (shape.kv_heads != shape.heads && shape.family != Family::llama)
      refuse("only the llama family has fewer kv_heads than heads");
    if (shape.heads % shape.kv_heads != 0)
      refuse(fmt::format("{} kv_heads do not divide {} heads", shape.kv_heads, shape.heads));
  }
  if (shape.family == Family::gpt2 || shape.family == Family::bert) {
    require_positive(shape.positions, "positions");
    if (size.sequence > shape.positions)
      refuse(fmt::format("a sequence of {} is longer than the {} positions the model has learned",
                         size.sequence, shape.positions));
  }
  const std::int64_t widest = std::max({shape.d_model, shape.d_ff, shape.vocabulary});
  require_countable("a weight",
                    {3, shape.d_model, std::max<std::int64_t>(widest, shape.positions)});
  require_countable("an activation", {size.batch, size.sequence, 3, widest});
  require_countable("the attention scores",
                    {size.batch, shape.heads, size.sequence, size.sequence});
}

/// The stream from one block to the next, in the format of parameters.
Bytes stream_of(const TransformerShape& shape, const WorkloadSize& size) {
  return std::int64_t{size.batch} * size.sequence * shape.d_model * size_of(size.dtype);
}

/// What attention gives: the stream, and of every row of scores the logarithm of its sum, in fp32.
Bytes attention_of(const TransformerShape& shape, const WorkloadSize& size) {
  const std::int64_t tokens = std::int64_t{size.batch} * size.sequence;
  return tokens * shape.d_model * size_of(size.compute) + tokens * shape.heads * Bytes{4};
}

}  // namespace

Workload transformer_workload(const TransformerShape& shape, const WorkloadSize& size) {
  check_shape(shape, size);
  Recipe recipe = recipe_of(shape, TransformerModules(shape, size));

  Workload workload;
  workload.source = recipe.source;
  append_layer(workload, "embedding", "", recipe.embedding, recipe.embedding_registration);
  for (int i = 0; i < shape.layers; ++i) {
    const std::string name = fmt::format("{}{}", recipe.blocks, i);
    append_layer(workload, name, name + ".", recipe.block, recipe.block_registration);
    if (size.checkpointed == selective_checkpoints)
      checkpoint_operations_of_last_layer(workload, stream_of(shape, size), size.compute,
                                          attention_of(shape, size));
    else if (is_checkpoint(i, size.checkpointed))
      checkpoint_last_layer(workload, stream_of(shape, size));
    if (i == 0 && recipe.between) recipe.block.insert(recipe.block.begin(), *recipe.between);
  }
  if (recipe.between) recipe.head.insert(recipe.head.begin(), *recipe.between);
  append_layer(workload, "head", "", recipe.head);
  return workload;
}

}  // namespace ddpsim
