#include "model/workload/transformer_modules.hpp"

#include "model/workload/attention.hpp"
#include "model/workload/eager_kernels.hpp"

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

using namespace eager;

/// Tensors of fp32, or of indices, whatever the model is stored in.
Bytes fp32(std::int64_t elements) {
  return elements * Bytes{4};
}
Bytes indices(std::int64_t elements) {
  return elements * Bytes{8};
}

}  // namespace

// --- embeddings ---

namespace {

/// The sums of rows of equal indices that are an embedding's gradient: sort and sum. On a GPU one
/// kernel for few indices; for many 10 kernels sort, 7 find where segments start, 2 sum, and
/// memsets clear what they count in. Source: EmbeddingBackwardKernel.cu, an H200's kernels
/// (tests/data/h200).
std::vector<EagerKernel> embedding_sums(std::int64_t gathered, std::int64_t width) {
  constexpr std::int64_t few = 3072;
  EagerKernel sums(3, PatternKind::embedding_sum, gathered, width);
  sums.call = Call::follows;
  if (gathered <= few) return {only_cpu(0), sums};
  sums.launches = 19;
  EagerKernel cleared = fill(0);
  cleared.call = Call::clears;
  cleared.launches = 10;
  return {only_cpu(0), only_gpu(follows(fill(0))), only_gpu(cleared), sums};
}

}  // namespace

/// Forward gathers rows; backward fills a gradient of the whole table, sorts the indices, adds up
/// rows.
Module TransformerModules::table(const std::string& name, std::int64_t rows,
                                 std::int64_t gathered) const {
  Module module;
  module.forward = {
      make_.eager(name, {{gathered * d_model_, {{2, PatternKind::gather, gathered, d_model_}}}})};
  module.backward = {make_.eager(
      name + ".grad",
      {{rows * d_model_, {fill(1)}}, {gathered * d_model_, embedding_sums(gathered, d_model_)}},
      Pass::backward)};
  module.parameters = {make_.parameter(name + ".weight", {rows, d_model_})};
  module.kept = indices(gathered);
  module.forward_working = module.backward_working = make_.stored(gathered * d_model_);
  module.calls = 1;
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
  module.backward.push_back(
      make_.eager(name + ".tie", {{vocabulary_ * d_model_, {again(3)}}}, Pass::backward));
  module.parameters.front().ready_after = 1;
  return module;
}

Module TransformerModules::position_embedding(const std::string& name) const {
  Module module = table(name, positions_, sequence_);
  // A GPU makes the positions in two small kernels, and reads the embeddings once for all samples.
  const double spread = 2 + 1.0 / static_cast<double>(batch_);
  module.forward.push_back(
      make_.eager(name + ".add", {{sequence_, {only_gpu(fill(1)), only_gpu(2)}, DType::fp32},
                                  {stream_, {only_cpu(3), only_gpu(strided(spread))}}}));
  // The gradient is summed over the batch before it reaches the table.
  module.backward.insert(
      module.backward.begin(),
      make_.eager(name + ".sum", {{stream_, {sum_of_rows(1, batch_, sequence_ * d_model_)}}},
                  Pass::backward));
  module.parameters.front().ready_after = 1;
  return module;
}

// --- the residual stream and its norms ---

Module TransformerModules::add(const std::string& name) const {
  if (!make_.casts()) return make_.elementwise(name, {stream_, {3}}, {});
  return make_.elementwise(name, {stream_, {mixed(2 + make_.computed_passes())}},
                           make_.to_computed(stream_));
}

Module TransformerModules::sum(const std::string& name) const {
  return make_.elementwise(name, {stream_, {3}}, {});
}

Module TransformerModules::fork(const std::string& name) const {
  return make_.fork(name, stream_);
}

Module TransformerModules::rms_norm(const std::string& name, Residual stream) const {
  // Kernels over x in fp32, and the casts between that and the format it comes in.
  const bool casts = make_.stored_type() != DType::fp32;
  const auto wide = [&](std::vector<EagerKernel> passes) {
    return EagerKernels{stream_, std::move(passes), DType::fp32};
  };
  const auto narrow = [&](std::vector<EagerKernel> passes) {
    return EagerKernels{stream_, std::move(passes)};
  };
  const EagerKernels widen = wide(casts ? std::vector{of(Call::cast, {1.5, PatternKind::widening})}
                                        : std::vector<EagerKernel>{});
  const EagerKernels back =
      narrow(casts ? std::vector{of(Call::cast, 3)} : std::vector<EagerKernel>{});
  // The gain multiplies in fp32, or what was cast back.
  const auto gain = [&](std::vector<EagerKernel> passes) {
    return wide_norm_ ? wide(std::move(passes)) : narrow(std::move(passes));
  };
  Module module;
  // square, mean, + eps, rsqrt, x * r; * gain
  module.forward = {
      make_.eager(name, {widen, wide({2, reduced(1, tokens_, d_model_), 0, 0, strided(2)}),
                         gain({casts && wide_norm_ ? mixed(2) : strided(2)}), back})};
  std::vector<EagerKernels> backward{
      gain({casts && wide_norm_ ? mixed(2) : strided(2),  // * gain: to its input, to the gain
            again(3),                                     // (product, sum over tokens)
            again(sum_of_rows(1, tokens_, d_model_))}),
      narrow(casts && wide_norm_ ? std::vector{only_gpu(of(Call::cast, 0))}
                                 : std::vector<EagerKernel>{}),
      widen,
      // x * r: to x and to r (product, sum over the row); rsqrt: r^3, * -1/2, * gradient
      wide({3, again(strided(2)), again(reduced(1, tokens_, d_model_)), 0, again(0), again(0),
            strided(1),                         // mean: spread over the row
            2, again(2), again(3), again(3)}),  // square: x^1, * 2, * gradient; both paths added up
      back};
  if (stream == Residual::goes_on) backward.push_back(narrow({again(3)}));
  module.backward = {make_.eager(name + ".grad", backward, Pass::backward)};
  module.forward_working = make_.stored(stream_);
  module.backward_working = make_.stored(2 * stream_);
  module.parameters = {make_.parameter(name + ".weight", {d_model_})};
  // x in fp32, 1/rms of every row, and x / rms: in fp32, or as Llama hands it to the gain.
  module.kept = fp32(stream_ + tokens_) + (wide_norm_ ? fp32(stream_) : make_.stored(stream_));
  module.calls = 1;
  return module;
}

Module TransformerModules::layer_norm(const std::string& name, Residual stream) const {
  // One kernel each for: the result; the gradient of the input; those of weight and bias.
  const auto kernel = [&](double passes, PatternKind kind) {
    return of(Call::layer_norm, {passes, kind, tokens_, d_model_});
  };
  EagerKernels backward{stream_,
                        {eager::backward(kernel(3, PatternKind::layer_norm)),
                         follows(kernel(2, PatternKind::layer_norm_weights))}};
  if (stream == Residual::goes_on) backward.passes.push_back(again(3));
  Module module =
      make_.elementwise(name, {stream_, {kernel(2, PatternKind::layer_norm)}}, backward);
  module.parameters = {make_.parameter(name + ".weight", {d_model_}),
                       make_.parameter(name + ".bias", {d_model_})};
  module.kept = make_.stored(stream_) + fp32(2 * tokens_);  // its input; mean and deviation of rows
  module.calls = 1;
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
  // Autocast multiplies tables of fp32, whose results stay in fp32 until the next product.
  const EagerKernel product = make_.casts() ? mixed(1 + make_.computed_passes()) : strided(2);
  const std::vector<EagerKernel> rotate{0, 0, 0, product, product, product, product, 3, 3, 4};
  const std::vector<EagerKernel> mask{0, 0, 0, 0, 0};  // positions, indices, compare, broadcast,
                                                       // -infinity
  const DType computed = make_.computed_type();
  Module module;
  module.forward = {make_.eager(name, {{stream_ / 2, rotate},
                                       {keys_ / 2, rotate},
                                       {sequence_, mask},
                                       make_.to_computed(stream_),
                                       make_.to_computed(keys_),
                                       {keys_, {strided(2)}, computed}})};
  std::vector<EagerKernels> backward{make_.to_stored(stream_), make_.to_stored(keys_)};
  for (const std::int64_t half : {stream_ / 2, keys_ / 2}) {
    // Each half of the input has two uses: product, product; -, product, +; product, +; stack.
    const EagerKernels cast = make_.to_computed(half);
    backward.push_back({half, {strided(2)}});
    backward.push_back(cast);
    backward.push_back({half, {strided(2)}});
    backward.push_back(cast);
    backward.push_back({half, {strided(2), strided(2)}});
    backward.push_back(cast);
    backward.push_back({half, {again(3)}, computed});
    backward.push_back({half, {strided(2)}});
    backward.push_back(cast);
    backward.push_back({half, {again(3), 4}, computed});
  }
  // Back from heads to tokens: a copy each of the gradients of queries, keys and values.
  backward.push_back({stream_, {strided(2)}, computed});
  backward.push_back({keys_, {strided(2), strided(2)}, computed});
  module.backward = {make_.eager(name + ".grad", backward, Pass::backward)};
  module.kept = fp32(2 * sequence_ * head_size_);  // the gathered tables, of queries and of keys
  module.forward_working = module.backward_working = make_.stored(2 * (stream_ + keys_));
  module.calls = 2;
  module.views = 24;
  return module;
}

Module TransformerModules::halved_rope(const std::string& name) const {
  // x * cos, -half, concatenate, * sin, +. Autocast multiplies tables of fp32, and what comes out
  // stays in fp32 until the next product.
  const EagerKernel product = make_.casts() ? mixed(1 + make_.computed_passes()) : strided(2);
  // * sin; two slices (fill, copy half) around -half; their sum; * cos; the sum of both paths
  const std::vector<EagerKernel> rotate_back{strided(1), fill(1),    follows(1),
                                             fill(1),    follows(1), again(3)};
  const DType computed = make_.computed_type();
  std::vector<EagerKernels> forward, backward, narrowed;
  for (const std::int64_t elements : {stream_, keys_}) {
    const EagerKernels cast = make_.to_computed(elements);
    forward.insert(forward.end(), {{elements, {product}},
                                   {elements, {strided(1), 2}, computed},
                                   {elements, {product, strided(3)}}});
    narrowed.push_back(cast);
    backward.insert(backward.end(), {make_.to_stored(elements),
                                     {elements, {strided(2)}},
                                     cast,
                                     {elements, rotate_back, computed},
                                     {elements, {strided(2)}},
                                     cast,
                                     // Back from heads to tokens is a copy.
                                     {elements, {again(strided(3)), strided(2)}, computed}});
  }
  forward.insert(forward.end(), narrowed.begin(), narrowed.end());
  Module module;
  module.forward = {make_.eager(name, forward)};
  module.backward = {make_.eager(name + ".grad", backward, Pass::backward)};
  module.forward_working = module.backward_working = make_.stored(2 * (stream_ + keys_));
  module.views = 15;
  return module;
}

Module TransformerModules::eager_scores(const std::string& name) const {
  const Gemm product{sequence_, sequence_, head_size_, batch_ * heads_};
  const Gemm gradient{sequence_, head_size_, sequence_, batch_ * heads_};
  Module module;
  module.forward = {make_.gemm(name, product, {2, Call::product, true})};
  module.backward = {
      make_.gemm(name + ".grad_query", gradient, {1, Call::product, true}, Pass::backward),
      make_.gemm(name + ".grad_key", gradient, {0, Call::product, true}, Pass::backward)};
  module.kept = make_.computed(stream_ + keys_);
  module.forward_working = make_.computed(scores_);
  module.backward_working = make_.computed(scores_ + stream_ + keys_);
  module.views = 11;
  return module;
}

Module TransformerModules::eager_softmax(const std::string& name) const {
  const std::int64_t rows = batch_ * heads_ * sequence_;
  const DType computed = make_.computed_type();
  const EagerKernel of_row = reduced(1, rows, sequence_);
  Module module;
  // / sqrt(d), mask, max, -; exp, sum, /, which autocast does in fp32
  module.forward = {make_.eager(name, {{scores_, {2, strided(2), of_row, strided(2)}, computed},
                                       make_.to_stored(scores_),
                                       {scores_, {2, of_row, strided(2)}},
                                       make_.to_computed(scores_)})};
  module.backward = {make_.eager(
      name + ".grad",
      {make_.to_stored(scores_),
       {scores_,
        // e / sum: to e; to the sum (/, -, *, /, sum); both paths to e added up; exp
        {strided(2), again(strided(2)), again(2), again(3), again(strided(2)), again(of_row),
         again(strided(2)), 3}},
       make_.to_computed(scores_),
       {scores_,
        // x - max: -, sum, fill, scatter; both paths added up; mask (zero, where); / sqrt(d)
        {2, again(of_row), fill(1), follows(0), again(3), fill(0), again(strided(2)), 2},
        computed}},
      Pass::backward)};
  // The exponentials; of every row the place of its maximum and its sum; the mask, a byte each. The
  // result is kept by the product with the values.
  module.kept = make_.stored(scores_ + rows) + indices(rows) + Bytes{sequence_ * sequence_};
  module.forward_working = make_.stored(2 * scores_);
  module.backward_working = make_.stored(3 * scores_);
  return module;
}

Module TransformerModules::eager_values(const std::string& name) const {
  const Gemm product{sequence_, head_size_, sequence_, batch_ * heads_};
  const Gemm to_weights{sequence_, sequence_, head_size_, batch_ * heads_};
  const EagerKernels copy{stream_, {strided(2)}, make_.computed_type()};
  Module module;
  // Then the heads are copied side by side.
  module.forward = {make_.gemm(name, product, {1, Call::product, true}),
                    make_.eager(name + ".merge", {copy})};
  module.backward = {
      make_.eager(name + ".split", {copy}, Pass::backward),
      make_.gemm(name + ".grad_weights", to_weights, {2, Call::product, true}, Pass::backward),
      make_.gemm(name + ".grad_value", product, {0, Call::product, true}, Pass::backward)};
  module.kept = make_.computed(scores_ + keys_);
  module.forward_working = make_.computed(2 * stream_);
  module.backward_working = make_.computed(scores_ + stream_ + keys_);
  module.views = 11;
  return module;
}

namespace {

/// The kernels of fused attention: one forward. Backward PyTorch's memory-efficient kernel of fp32
/// has the product of result and gradient by rows in three kernels before it, and clears what the
/// gradients of queries are added up in. Source: attention_backward.cu.
std::vector<KernelPart> attention_parts(const Attention& shape, std::int64_t key_heads, DType type,
                                        Bytes traffic) {
  CallParts parts(shape.backward ? Pass::backward : Pass::forward);
  const bool wide = size_of(type) == size_of(DType::fp32);
  DeviceKernel kernel;
  kernel.shape =
      AttentionOperation{shape, wide ? AttentionKernel::efficient : AttentionKernel::usual};
  kernel.type = type;
  kernel.traffic = traffic;
  if (!shape.backward || !wide) {
    kernel.launches = shape.backward ? 3 : 1;
    parts.add(kernel, Call::attention);
    // Gradients of keys and values are made for every head of queries, and added up.
    const std::int64_t groups = shape.heads / key_heads;
    if (shape.backward && groups > 1) {
      const std::int64_t kept = shape.batch * key_heads * shape.keys * shape.size;
      DeviceKernel sum;
      sum.shape = MemoryPattern{.of = PatternKind::sum_of_rows, .rows = groups, .columns = kept};
      sum.type = type;
      sum.traffic = (groups + 1) * kept * size_of(type);
      for (int each = 0; each < 2; ++each) parts.add(sum, Call::follows);
    }
    return std::move(parts).take();
  }
  const std::int64_t rows = shape.batch * shape.heads * shape.queries;
  const Bytes tensor = fp32(rows * shape.size);
  const auto moves = [&](PatternKind kind, Bytes moved, Call call) {
    DeviceKernel each;
    each.shape = MemoryPattern{.of = kind, .rows = rows, .columns = shape.size};
    each.traffic = moved;
    parts.add(each, call);
  };
  moves(PatternKind::elementwise, 3 * tensor, Call::attention);
  moves(PatternKind::reduce, tensor + fp32(rows), Call::follows);
  moves(PatternKind::strided, fp32(2 * rows), Call::follows);
  moves(PatternKind::fill, tensor, Call::follows);
  parts.add(kernel, Call::follows);
  return std::move(parts).take();
}

}  // namespace

Module TransformerModules::fused_attention(const std::string& name, Mask mask,
                                           std::int64_t keys) const {
  const std::int64_t asked = keys > 0 ? keys : sequence_;
  const std::int64_t key_elements = batch_ * asked * kv_heads_ * head_size_;
  Attention attention{.batch = batch_,
                      .heads = heads_,
                      .queries = sequence_,
                      .keys = asked,
                      .size = head_size_,
                      .causal = mask == Mask::causal};
  const std::int64_t rows = tokens_ * heads_;
  // Queries, keys, values and the result; of every row the logarithm of its sum, in fp32.
  Kernel forward = make_.gemm(name, fused_attention_gemm(attention), 0);
  forward.traffic = make_.computed(2 * (stream_ + key_elements)) + fp32(rows);
  forward.parts = attention_parts(attention, kv_heads_, make_.computed_type(), forward.traffic);
  attention.backward = true;
  // These and their gradients. Three kernels: the product of result and gradient by rows, the
  // gradients, and that of the queries from its sum in fp32. Source: PyTorch's
  // flash_bwd_launch_template.h.
  Kernel backward = make_.gemm(name + ".grad", fused_attention_gemm(attention), 0);
  backward.traffic =
      make_.computed(4 * (stream_ + key_elements) + stream_) + fp32(3 * rows + 2 * stream_);
  backward.launches = 3;
  backward.recomputed = recomputed_share(attention);
  backward.parts = attention_parts(attention, kv_heads_, make_.computed_type(), backward.traffic);
  Module module;
  module.forward = {forward};
  module.backward = {backward};
  // Queries, keys, values and the result; the logarithm of every row's sum, in fp32. Source:
  // PyTorch's derivatives.yaml, _scaled_dot_product_flash_attention.
  module.kept = make_.computed(2 * (stream_ + key_elements)) + fp32(tokens_ * heads_);
  module.forward_working = make_.computed(stream_);
  module.backward_working = make_.computed(2 * (stream_ + key_elements));
  return module;
}

Module TransformerModules::gathered_gradients(const std::string& name) const {
  Module module;
  module.backward = {
      make_.eager(name, {{stream_ + 2 * keys_, {2}, make_.computed_type()}}, Pass::backward)};
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
  const DType type = make_.computed_type();
  Module module = make_.elementwise(name, {hidden_, {2, 3, 3}, type},
                                    {hidden_, {3, again(3), 3, again(3), 3, again(3)}, type});
  module.kept = make_.computed(4 * hidden_);  // the gate, its sigmoid, their product, up
  return module;
}

Module TransformerModules::swiglu(const std::string& name) const {
  const DType type = make_.computed_type();
  Module module = make_.elementwise(name, {hidden_, {2, 3}, type},
                                    {hidden_, {3, again(3), of(Call::gelu, 3)}, type});
  module.kept = make_.computed(3 * hidden_);  // the gate, its silu, up
  module.calls = 1;
  return module;
}

Module TransformerModules::gelu(const std::string& name) const {
  const DType type = make_.computed_type();
  const auto kernel = [](double passes) { return of(Call::gelu, {passes, PatternKind::gelu}); };
  Module module = make_.elementwise(name, {hidden_, {kernel(2)}, type},
                                    {hidden_, {eager::backward(kernel(3))}, type});
  module.kept = make_.computed(hidden_);  // its input
  module.calls = 1;
  return module;
}

Module TransformerModules::tanh_gelu(const std::string& name) const {
  // Autocast computes the power in fp32, and what follows with it.
  const DType type = make_.computed_type();
  const EagerKernel both = make_.casts() ? mixed(2 + make_.computed_passes()) : EagerKernel(3);
  const EagerKernels narrowed = make_.to_computed(hidden_);
  Module module;
  // * 0.5; ^3, * 0.044715, +, * sqrt(2/pi), tanh, + 1, *
  module.forward = {make_.eager(
      name,
      {{hidden_, {2}, type}, make_.to_stored(hidden_), {hidden_, {2, 2, both, 2, 2, 2, both}}})};
  module.backward = {
      make_.eager(name + ".grad",
                  {{hidden_, {both, again(3)}},  // the last *, to both sides
                   narrowed,
                   {hidden_, {3, 2}},  // tanh, * sqrt(2/pi)
                   narrowed,
                   {hidden_, {2, 2, again(2), again(3)}},  // * 0.044715; ^3: x^2, * 3, * gradient
                   narrowed,
                   // added to +'s x; * 0.5; all paths to x added up
                   {hidden_, {again(3), 2, again(3)}, type}},
                  Pass::backward)};
  module.forward_working = make_.stored(hidden_);
  module.backward_working = make_.stored(2 * hidden_);
  // x / 2 for the last product; in fp32 under autocast x for ^3, tanh's result, and that + 1.
  module.kept = make_.computed(hidden_) + make_.stored(3 * hidden_);
  module.calls = 1;
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
  const DType type = make_.computed_type();
  const EagerKernel of_row = reduced(1, tokens_, vocabulary_);
  const EagerKernel both = make_.casts() ? mixed(1 + make_.computed_passes()) : strided(2);
  const EagerKernels narrowed = make_.to_computed(logits_);
  Module module;
  // max, -; exp, sum, log, -, negate, gather, mean
  module.forward = {make_.eager(name, {{logits_, {of_row, strided(2)}, type},
                                       make_.to_stored(logits_),
                                       {logits_, {2, of_row, 0, both, 2, 0, 0}}})};
  module.backward = {make_.eager(
      name + ".grad",
      {{logits_, {again(fill(0)), 0, fill(1), follows(0), 2, 2}},  // one, mean, gather (fill,
       narrowed,                                                   // scatter); negate; x - log:
       {logits_, {again(of_row), 0, strided(2)}},                  // to the log (-, sum); log, exp
       narrowed,
       // both paths to x - max added up; x - max: -, sum, fill, scatter; both paths added up
       {logits_, {again(3), 2, again(of_row), fill(1), follows(0), again(3)}, type}},
      Pass::backward)};
  // The exponentials, and what is gathered from; the place of every row's maximum, and its target.
  // Beside them the training loop holds the logits, and forward there are the logarithms; backward
  // the gradients of the result, of the exponentials, and their sum.
  module.kept = make_.stored(2 * logits_) + indices(2 * tokens_);
  module.forward_working = make_.stored(2 * logits_);
  module.backward_working = make_.stored(4 * logits_);
  module.views = 1;
  return module;
}

Module TransformerModules::causal_cross_entropy(const std::string& name) const {
  // The labels are shifted, not the logits (transformers 4.46 and later).
  const EagerKernels widened =
      make_.casts() ? make_.to_stored(logits_)
      : make_.stored_type() == DType::fp32
          ? EagerKernels{}
          : EagerKernels{logits_, {of(Call::cast, {1.5, PatternKind::widening})}, DType::fp32};
  const EagerKernels narrowed =
      widened.passes.empty() ? EagerKernels{}
                             : EagerKernels{logits_, {of(Call::cast, 3)}, make_.computed_type()};
  const auto softmax = [&](double passes) {
    return of(Call::softmax, {passes, PatternKind::log_softmax, tokens_, vocabulary_});
  };
  Module module;
  // Labels: fill, copy; log_softmax, nll_loss.
  module.forward = {make_.eager(
      name, {widened, {logits_, {fill(0), follows(0), only_gpu(0), softmax(2), 0}, DType::fp32}})};
  // The one that backward begins with; nll_loss (fill, scatter), log_softmax.
  module.backward = {
      make_.eager(name + ".grad",
                  {{logits_,
                    {only_gpu(again(fill(0))), fill(1), follows(0), eager::backward(softmax(3))},
                    DType::fp32},
                   narrowed},
                  Pass::backward)};
  // log_softmax's result, in fp32 whatever the logits are; the targets. Forward the logits and a
  // copy are there beside it; backward the gradients of result and input.
  module.kept = fp32(logits_) + indices(tokens_);
  module.forward_working = make_.computed(logits_) + fp32(logits_);
  module.backward_working = fp32(2 * logits_);
  module.views = 3;
  return module;
}

std::vector<Module> TransformerModules::pooler(const std::string& name) const {
  const std::int64_t elements = batch_ * d_model_;
  // The first tokens are a view; its gradient is a fill of the whole stream and a copy of a row.
  // Kept for the projection, the view keeps the whole stream, unless autocast copies the row.
  Module first = make_.elementwise(name + ".first_token", {}, {stream_, {fill(1), follows(0)}});
  first.kept = make_.casts() ? make_.computed(elements) : make_.stored(stream_);
  first.calls = 1;
  first.views = 2;
  Module dense = make_.linear(LinearKind::biased, batch_, d_model_, {{name + ".dense", d_model_}},
                              Operand::stored);
  dense.kept = make_.casts() ? make_.computed(d_model_ * d_model_) : Bytes{};
  dense.views = 0;
  Module tanh = make_.elementwise(name + ".tanh", {elements, {2}, make_.computed_type()},
                                  {elements, {3}, make_.computed_type()});
  tanh.kept = make_.computed(elements);
  tanh.calls = 1;
  return {first, dense, tanh};
}

}  // namespace ddpsim
