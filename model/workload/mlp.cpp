#include "model/workload/mlp.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "model/workload/layer_builder.hpp"

namespace ddpsim {
namespace {

void check_shape(const MlpShape& shape, const WorkloadSize& size) {
  if (shape.widths.size() < 2)
    throw std::invalid_argument(
        fmt::format("widths: a multilayer perceptron has at least two (its input's and its "
                    "output's), got {}",
                    shape.widths.size()));
  require_positive(size.batch, "batch");
  for (const int width : shape.widths) {
    require_positive(width, "widths");
    require_countable("an activation", {size.batch, width});
  }
  std::int64_t elements = 0;
  for (std::size_t i = 0; i + 1 < shape.widths.size(); ++i) {
    const std::int64_t in = shape.widths[i], out = shape.widths[i + 1];
    require_countable("a weight", {out, in});
    elements += out * in;
    require_countable("the network", {elements});
  }
}

/// Squared difference, mean; backward one, fill, difference times gradient.
Module squared_loss(const ModuleMaker& make, std::int64_t outputs) {
  using namespace eager;
  Module loss;
  loss.forward = {make.eager(
      "loss", {make.to_stored(outputs), {outputs, {3, follows(eager::sum(1, outputs))}}})};
  loss.backward = {make.eager(
      "loss.grad", {{outputs, {again(fill(0)), only_cpu(1), 3}}, make.to_computed(outputs)},
      Pass::backward)};
  loss.forward_working = make.stored(outputs);
  loss.backward_working = make.stored(2 * outputs);
  loss.kept = make.stored(2 * outputs);  // what was predicted, and the target
  loss.calls = 1;
  return loss;
}

}  // namespace

Workload mlp_workload(const MlpShape& shape, const WorkloadSize& size) {
  check_shape(shape, size);
  const ModuleMaker make(size.dtype, size.compute);
  const LinearKind kind = shape.bias ? LinearKind::biased : LinearKind::linear;
  Workload workload;
  workload.source = "torch.nn.Sequential of Linear and ReLU on PyTorch, mean-squared-error loss";

  // torch.nn.Sequential numbers its modules: a Linear and its ReLU are two.
  const std::size_t linears = shape.widths.size() - 1;
  for (std::size_t i = 0; i < linears; ++i) {
    const std::string name = std::to_string(2 * i);
    const std::int64_t in = shape.widths[i], out = shape.widths[i + 1];
    const std::int64_t activation = size.batch * out;
    const Input input = i == 0 ? Input::data : Input::activation;
    std::vector<Module> modules{make.linear(kind, size.batch, in, {{name, out}},
                                            i == 0 ? Operand::stored : Operand::kept, input)};
    modules.front().views = 0;  // its rows are no sequences
    const DType type = make.computed_type();
    if (i + 1 < linears) {
      modules.push_back(make.elementwise(std::to_string(2 * i + 1), {activation, {2}, type},
                                         {activation, {3}, type}));
      modules.back().kept = make.computed(activation);  // its result
      modules.back().calls = 1;
    } else {
      modules.push_back(squared_loss(make, activation));
    }
    append_layer(workload, name, "", modules);
  }
  return workload;
}

}  // namespace ddpsim
