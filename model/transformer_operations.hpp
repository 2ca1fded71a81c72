#pragma once

#include <string>

#include "model/architecture.hpp"
#include "model/layer_builder.hpp"

namespace ddpsim {

/// What becomes of the residual stream beside a norm that reads it: it goes on around the sublayer,
/// and backward adds its gradient to the norm's; or the norm is its only use.
enum class Stream : std::uint8_t { goes_on, ends };

/// The operations transformers consist of, at one shape and size. The pass counts are PyTorch's
/// kernels, op by op, as its dispatcher shows them (torch 1.13). Dropout is left out. Names are
/// relative to the layer.
class TransformerOperations {
 public:
  TransformerOperations(const TransformerShape& shape, const WorkloadSize& size);

  /// Rows of a table, one per token: of the vocabulary, or of a smaller one.
  Operation embedding(const std::string& name) const;
  Operation small_embedding(const std::string& name, std::int64_t rows) const;
  /// A table that is the output projection too: that gradient, there since the head, is added at
  /// the end.
  Operation tied_embedding(const std::string& name) const;
  /// Learned positions, the same for every sample, added to the tokens' embeddings.
  Operation position_embedding(const std::string& name) const;

  Operation add(const std::string& name) const;
  Operation fork(const std::string& name) const;
  Operation rms_norm(const std::string& name, Stream stream) const;
  Operation layer_norm(const std::string& name, Stream stream) const;

  /// The projections of attention: queries as wide as the model, keys and values as wide as their
  /// heads.
  Operation query_key_value(LinearKind kind, const std::string& query, const std::string& key,
                            const std::string& value) const;
  /// Rotary positions of queries and keys: pairs of neighbours, gathered tables, and, as in the
  /// course's code, the causal mask and a copy of the values into heads.
  Operation paired_rope(const std::string& name) const;
  /// Rotary positions as Hugging Face computes them: the two halves of a head.
  Operation halved_rope(const std::string& name) const;
  /// softmax(Q K^T / sqrt(d)) V with the scores in memory, and the heads side by side again.
  Operation eager_scores(const std::string& name) const;
  Operation eager_softmax(const std::string& name) const;
  Operation eager_values(const std::string& name) const;
  /// The same products in a fused kernel: only queries, keys, values and the result touch memory.
  /// Neither the blocks a causal mask skips nor the scores that backward recomputes are counted.
  Operation fused_attention(const std::string& name) const;

  /// A projection of all tokens.
  Operation linear(LinearKind kind, std::int64_t in, const Projection& projection) const;
  Operation gate_and_up(LinearKind kind, const std::string& gate, const std::string& up) const;
  /// silu(gate) * up with silu as x * sigmoid(x), or as one kernel.
  Operation eager_swiglu(const std::string& name) const;
  Operation swiglu(const std::string& name) const;
  Operation gelu(const std::string& name) const;
  /// Hugging Face's NewGELU: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), one kernel per
  /// operator.
  Operation tanh_gelu(const std::string& name) const;

  /// The output projection through a table that is an embedding's too: it trains nothing of its
  /// own.
  Operation tied_projection(const std::string& name) const;
  /// Cross-entropy of the logits as the course writes it: max, exp, sum, log and gather.
  Operation eager_cross_entropy(const std::string& name) const;
  /// Hugging Face's causal loss: a shifted copy of the logits, log_softmax and nll_loss.
  Operation causal_cross_entropy(const std::string& name) const;
  /// BertModel's pooler: tanh of a projection of every sample's first token.
  std::vector<Operation> pooler(const std::string& name) const;

 private:
  Operation table(const std::string& name, std::int64_t rows, std::int64_t gathered) const;

  OperationMaker make_;
  std::int64_t batch_, sequence_, d_model_, d_ff_, heads_, kv_heads_, vocabulary_, positions_;
  std::int64_t head_size_, tokens_;
  std::int64_t stream_, keys_, hidden_, scores_,
      logits_;  // elements: [tokens, d_model], its keys, ...
};

}  // namespace ddpsim
