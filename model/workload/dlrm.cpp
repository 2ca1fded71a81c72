// A click is predicted from dense features, of which a network makes a vector, and categorical
// ones, each of which chooses a vector from its table. The products of all pairs of vectors and the
// dense vector feed a second network. The tables hold nearly all parameters; their gradients are
// dense, as DistributedDataParallel averages them over NCCL.
// Source: Naumov et al., arXiv 1906.00091; scenarios/examples/models/dlrm.py, whose kernels a
// description has.

#include "model/workload/dlrm.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/workload/layer_builder.hpp"
#include "model/workload/transformer_modules.hpp"

namespace ddpsim {
namespace {

using namespace eager;
struct DlrmNumbers {
  std::int64_t batch, tables, rows, width;
  std::int64_t vectors() const { return tables + 1; }
  std::int64_t pairs() const { return vectors() * (vectors() - 1) / 2; }
};

/// What the first layer of a network reads: the batch's own features, or what pairs were made of.
struct Reads {
  Operand operand;
  Input input;
};

/// Linear and ReLU in turn, as torch.nn.Sequential numbers them: a Linear and its ReLU are two.
Modules network(const ModuleMaker& make, std::int64_t rows, std::vector<std::int64_t> widths,
                const std::string& name, Reads reads) {
  const DType type = make.computed_type();
  Modules modules;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::string layer = fmt::format("{}.{}", name, 2 * i);
    modules.push_back(make.linear(LinearKind::biased, rows, widths[i], {{layer, widths[i + 1]}},
                                  i == 0 ? reads.operand : Operand::kept,
                                  i == 0 ? reads.input : Input::activation));
    modules.back().views = 0;  // its rows are no sequences
    const std::int64_t results = rows * widths[i + 1];
    modules.push_back(make.elementwise(fmt::format("{}.{}", name, 2 * i + 1), {results, {2}, type},
                                       {results, {3}, type}));
    modules.back().kept = make.computed(results);
    modules.back().calls = 1;
  }
  return modules;
}

/// One table: the call that gathers rows copies a column of the categories first.
Module table(const TransformerModules& x, const ModuleMaker& make, const DlrmNumbers& n,
             int number) {
  const std::string name = fmt::format("tables.{}", number);
  const EagerKernel gather(2, PatternKind::gather, n.batch, n.width);
  Module module = x.embedding(name);
  module.forward = {make.eager(
      name, {{n.batch, {strided(4)}, DType::fp32}, {n.batch * n.width, {follows(gather)}}})};
  module.views = 1;
  return module;
}

/// The vectors side by side, and the products of all pairs of them.
Module products(const ModuleMaker& make, const DlrmNumbers& n) {
  const std::int64_t vectors = n.vectors(), all = n.batch * vectors * n.width;
  const Gemm product{vectors, vectors, n.width, n.batch};
  Module module;
  module.forward = {make.eager("stack", {make.to_stored(n.batch * n.width),
                                         {all, {2}},
                                         make.to_computed(all),
                                         make.to_computed(all)}),
                    make.gemm("products", product, {2, Call::product, true})};
  const EagerKernels widened = make.to_stored(all);
  module.backward = {
      make.gemm("products.grad_right", {n.width, vectors, vectors, n.batch},
                {0, Call::product, true}, Pass::backward),
      make.gemm("products.grad_left", {vectors, n.width, vectors, n.batch},
                {1, Call::product, true}, Pass::backward),
      make.eager(
          "stack.grad",
          {widened, widened, {all, {again(strided(3))}}, make.to_computed(n.batch * n.width)},
          Pass::backward)};
  module.kept = make.computed((make.casts() ? 2 : 1) * all);
  module.forward_working = make.stored(all);
  module.backward_working = make.stored(3 * all);
  module.views = 3;
  return module;
}

/// The products of different vectors, each pair once, and the dense vector beside them. Backward
/// the places of the pairs are sorted, and their gradients put into zeros.
Module pairs(const ModuleMaker& make, const DlrmNumbers& n) {
  const std::int64_t chosen = n.batch * n.pairs(), square = n.batch * n.vectors() * n.vectors();
  const std::int64_t top = n.batch * (n.width + n.pairs());
  const DType type = make.computed_type();
  // A sort of indices of eight bytes, counted in fours. An embedding's gradient is sorted in the
  // same way; the passes are those of a description.
  EagerKernel sorting = again({68, PatternKind::embedding_sum, n.pairs(), n.vectors()});
  sorting.launches = 10;
  Module module;
  module.forward = {make.eager(
      "pairs",
      {{chosen, {{2, PatternKind::gather, n.batch * n.pairs() / n.vectors(), n.vectors()}}, type},
       {top, {2}, type}})};
  module.backward = {make.eager("pairs.grad",
                                {{square, {fill(1), again(2)}, type},
                                 {n.pairs(), {again(fill(2)), sorting}, DType::fp32},
                                 {chosen, {again(3)}, type},
                                 {n.batch * n.width, {again(strided(3))}, type}},
                                Pass::backward)};
  module.forward_working = make.computed(chosen + top);
  module.backward_working = make.computed(2 * square + top);
  module.kept = make.computed(top);
  module.views = 2;
  return module;
}

/// The last layer, and the cross-entropy of one logit a sample.
Modules click(const ModuleMaker& make, const DlrmNumbers& n, const std::string& name,
              std::int64_t width) {
  Module last = make.linear(LinearKind::biased, n.batch, width, {{name, 1}}, Operand::kept);
  last.views = 0;
  Module loss;
  EagerKernel entropy = 3;
  entropy.launches = 4;
  loss.forward = {make.eager(
      "loss", {make.to_stored(n.batch), {n.batch, {entropy, follows(eager::sum(1, n.batch))}}})};
  loss.backward = {make.eager(
      "loss.grad",
      {{n.batch, {again(fill(0)), 2, again(3), again(2), again(2)}}, make.to_computed(n.batch)},
      Pass::backward)};
  loss.forward_working = loss.backward_working = make.stored(2 * n.batch);
  loss.kept = make.stored(2 * n.batch);
  loss.views = 1;
  return {last, loss};
}

void check_shape(const DlrmShape& shape, const WorkloadSize& size) {
  require_positive(shape.tables, "tables");
  require_positive(shape.rows, "rows");
  require_positive(shape.width, "width");
  require_positive(shape.dense, "dense");
  require_positive(size.batch, "batch");
  std::int64_t widest = std::max(shape.width, shape.dense);
  for (const auto* widths : {&shape.bottom, &shape.top})
    for (const int each : *widths) {
      require_positive(each, "widths");
      widest = std::max<std::int64_t>(widest, each);
    }
  if (shape.top.empty()) throw std::invalid_argument("top: at least one layer, got none");
  const std::int64_t vectors = std::int64_t{shape.tables} + 1;
  require_countable("the tables", {shape.tables, shape.rows, shape.width});
  require_countable("a weight", {widest, widest + vectors * vectors});
  require_countable("an activation", {size.batch, widest});
  require_countable("the products of pairs", {size.batch, vectors, vectors + shape.width});
}

}  // namespace

Workload dlrm_workload(const DlrmShape& shape, const WorkloadSize& size) {
  check_shape(shape, size);
  const DlrmNumbers n{size.batch, shape.tables, shape.rows, shape.width};
  const ModuleMaker make(size.dtype, size.compute);
  TransformerShape inner;  // for its embedding
  inner.d_model = shape.width;
  inner.heads = 1;
  inner.vocabulary = shape.rows;
  WorkloadSize samples = size;
  samples.sequence = 1;
  const TransformerModules x(inner, samples);

  Workload workload;
  workload.source = "DLRM on PyTorch with dense gradients of its tables";
  std::vector<std::int64_t> bottom{shape.dense};
  bottom.insert(bottom.end(), shape.bottom.begin(), shape.bottom.end());
  bottom.push_back(n.width);
  append_layer(workload, "bottom", "",
               network(make, n.batch, bottom, "bottom", {Operand::stored, Input::data}));
  const std::size_t in_bottom = workload.parameters.size();

  Modules middle;
  for (int i = 0; i < shape.tables; ++i) middle.push_back(table(x, make, n, i));
  middle.push_back(products(make, n));
  middle.push_back(pairs(make, n));
  append_layer(workload, "tables", "", middle);
  // The tables are registered before the networks.
  std::rotate(workload.parameters.begin(),
              workload.parameters.begin() + static_cast<std::ptrdiff_t>(in_bottom),
              workload.parameters.end());

  std::vector<std::int64_t> top{n.width + n.pairs()};
  top.insert(top.end(), shape.top.begin(), shape.top.end());
  Modules last = network(make, n.batch, top, "top", {Operand::kept, Input::activation});
  const std::string name = fmt::format("top.{}", 2 * shape.top.size());
  for (Module& module : click(make, n, name, top.back())) last.push_back(std::move(module));
  append_layer(workload, "top", "", last);
  return workload;
}

}  // namespace ddpsim
