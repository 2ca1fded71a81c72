#pragma once

#include <string>

#include "model/workload/architecture.hpp"
#include "model/workload/layer_builder.hpp"

namespace ddpsim {

/// What becomes of the residual stream beside a norm that reads it: it goes on around the sublayer,
/// and backward adds its gradient to the norm's; or the norm is its only use.
enum class Residual : std::uint8_t { goes_on, ends };

/// Which keys a query sees: all, or none behind it.
enum class Mask : std::uint8_t { none, causal };

/// The modules transformers consist of, at one shape and size. The pass counts are PyTorch's
/// kernels, op by op, as its dispatcher shows them (torch 1.13). Dropout is left out. Names are
/// relative to the layer.
class TransformerModules {
 public:
  TransformerModules(const TransformerShape& shape, const WorkloadSize& size);

  /// Rows of a table, one per token: of the vocabulary, or of a smaller one.
  Module embedding(const std::string& name) const;
  Module small_embedding(const std::string& name, std::int64_t rows) const;
  /// A table that is the output projection too: that gradient, there since the head, is added at
  /// the end.
  Module tied_embedding(const std::string& name) const;
  /// Learned positions, the same for every sample, added to the tokens' embeddings.
  Module position_embedding(const std::string& name) const;

  /// What a sublayer gave added to the stream beside it; and of two tensors of the stream's format.
  Module add(const std::string& name) const;
  Module sum(const std::string& name) const;
  Module fork(const std::string& name) const;
  Module rms_norm(const std::string& name, Residual stream) const;
  Module layer_norm(const std::string& name, Residual stream) const;

  /// The projections of attention: queries as wide as the model, keys and values as wide as their
  /// heads.
  Module query_key_value(LinearKind kind, const std::string& query, const std::string& key,
                         const std::string& value) const;
  /// Rotary positions of queries and keys: pairs of neighbours, gathered tables, and, as in the
  /// course's code, the causal mask and a copy of the values into heads.
  Module paired_rope(const std::string& name) const;
  /// Rotary positions as Hugging Face computes them: the two halves of a head.
  Module halved_rope(const std::string& name) const;
  /// softmax(Q K^T / sqrt(d)) V with the scores in memory, and the heads side by side again.
  Module eager_scores(const std::string& name) const;
  Module eager_softmax(const std::string& name) const;
  Module eager_values(const std::string& name) const;
  /// Attention's products in a fused kernel (model/workload/attention.hpp): only queries, keys,
  /// values and the result touch memory.
  /// `keys`: how many a sample has, of another stream; 0: as many as queries.
  Module fused_attention(const std::string& name, Mask mask, std::int64_t keys = 0) const;

  /// Backward of one tensor cut into queries, keys and values: their gradients side by side.
  Module gathered_gradients(const std::string& name) const;

  /// A projection of all tokens.
  Module linear(LinearKind kind, std::int64_t in, const Projection& projection,
                Operand operand) const;
  Module gate_and_up(LinearKind kind, const std::string& gate, const std::string& up) const;
  /// silu(gate) * up with silu as x * sigmoid(x), or as one kernel.
  Module eager_swiglu(const std::string& name) const;
  Module swiglu(const std::string& name) const;
  Module gelu(const std::string& name) const;
  /// Hugging Face's NewGELU: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), one kernel per
  /// operator.
  Module tanh_gelu(const std::string& name) const;

  /// The output projection through a table that is an embedding's too: it trains nothing of its
  /// own.
  Module tied_projection(const std::string& name) const;
  /// Cross-entropy of the logits as the course writes it: max, exp, sum, log and gather.
  Module eager_cross_entropy(const std::string& name) const;
  /// Hugging Face's causal loss: a shifted copy of the logits, log_softmax and nll_loss.
  Module causal_cross_entropy(const std::string& name) const;
  /// BertModel's pooler: tanh of a projection of every sample's first token.
  std::vector<Module> pooler(const std::string& name) const;

 private:
  Module table(const std::string& name, std::int64_t rows, std::int64_t gathered) const;

  ModuleMaker make_;
  std::int64_t batch_, sequence_, d_model_, d_ff_, heads_, kv_heads_, vocabulary_, positions_;
  std::int64_t head_size_, tokens_;
  std::int64_t stream_, keys_, hidden_, scores_,
      logits_;      // elements: [tokens, d_model], its keys, ...
  bool wide_norm_;  ///< RMSNorm multiplies by its gain in fp32
};

}  // namespace ddpsim
