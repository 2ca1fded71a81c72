// What a GPU cannot do: other number formats than fp32, fp16 and bf16, operands whose sizes do not
// fit together, and what is done with the host's memory.

#include <string>
#include <variant>

#include <fmt/format.h>

#include "backend/device/cuda/gpu_device.hpp"
#include "backend/execute/operand_refusal.hpp"

namespace ddpsim {

using namespace program;  // NOLINT: the names of all actions

namespace {

constexpr std::int64_t longest_side = std::int64_t{1} << 31;

class Refusal : public execute::OperandRefusal {
 public:
  Refusal(const Job& job, const program::Task& task)
      : OperandRefusal(job, task, "a GPU", longest_side) {}

  using OperandRefusal::operator();
  std::string operator()(const Chunked&) const { return no_hook("chunks"); }
  std::string operator()(const Clip&) const { return no_hook("clip"); }
  std::string operator()(const Noise&) const { return no_hook("noise"); }
  std::string operator()(const Plugin& plugin) const {
    if (plugin.what == Plugin::What::gradient) return no_hook("plugin");
    return "a plugin's comm hook works on the host's memory, so on the gloo backend only";
  }
  std::string operator()(const TakeRows&) const { return sparse; }
  std::string operator()(const AddRows&) const { return sparse; }
  std::string operator()(const Select&) const { return topk; }
  std::string operator()(const Spread&) const { return topk; }

  std::string operator()(const Compute& compute) const {
    const auto fills = slices(compute.fills), rows = slices(compute.rows);
    for (const Slice& each : rows)
      if (!each.empty()) return sparse;
    for (const Slice& each : fills)
      if (const std::string why = numbers({each}); !why.empty()) return why;
    const Work& work = job_.works[task_.work];
    const std::optional<Gemm>& gemm = work.gemm;
    if (!gemm) return compute.result.empty() ? "" : "it has a result, and is no product";
    if (!execute::is_number(stored_as(work.type)))
      return fmt::format("the nccl backend multiplies no {} on a GPU", ddpsim::name_of(work.type));
    if (const std::string why = product(*gemm); !why.empty()) return why;
    if (compute.result.empty()) return "";
    const DType result = type_of(compute.result);
    if (result != DType::fp32 && result != work.type)
      return fmt::format("it multiplies in {}, and its gradient is {}: no library does that",
                         ddpsim::name_of(work.type), ddpsim::name_of(result));
    return compute.result.count == gemm->batch * gemm->m * gemm->n
               ? ""
               : "its result is no matrix of its product";
  }
  std::string operator()(const Scale& scale) const {
    return copied(scale.to, scale.from, scale.factor != 1 || scale.mean_over != nobody);
  }
  std::string operator()(const Fill& fill) const {
    return fill.value == 0 ? "" : numbers({fill.to});
  }
  std::string operator()(const Combine& combine) const {
    for (const Slice& each : {combine.left, combine.right}) {
      if (const std::string why = alike(combine.to, each); !why.empty()) return why;
      if (type_of(each) != type_of(combine.to)) return formats_differ;
    }
    return "";
  }
  std::string operator()(const Multiply& multiply) const {
    const bool is_one = type_of(multiply.left) == type_of(multiply.to) &&
                        type_of(multiply.right) == type_of(multiply.to);
    const std::string why = OperandRefusal::operator()(multiply);
    return why.empty() && !is_one ? formats_differ : why;
  }
  std::string operator()(const Update& update) const {
    if (const std::string why = this->update(update); !why.empty()) return why;
    if (update.optimizer == Optimizer::none) return "";
    const auto parameters = slices(update.parameters), gradients = slices(update.gradients),
               state = slices(update.state);
    const std::size_t kept = state_slices(update.optimizer);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (const std::string why = numbers({parameters[i], gradients[i]}); !why.empty()) return why;
      if (type_of(parameters[i]) != type_of(gradients[i])) return formats_differ;
      for (std::size_t k = 0; k < kept; ++k)
        if (type_of(state[kept * i + k]) != type_of(parameters[i]))
          return "the state of a parameter has another number format";
    }
    return "";
  }
  std::string operator()(const Move& move) const { return copied(move.to, move.from, false); }

 private:
  static constexpr const char* formats_differ = "its operands have not one number format";
  static constexpr const char* sparse =
      "sparse gradients are reduced in simulation and by the gloo backend only";
  static constexpr const char* topk = "topk runs on the gloo backend only";

  static std::string no_hook(const char* kind) {
    return fmt::format(
        "the nccl backend carries out scale, decay and record hooks, not {}: take it out of "
        "training.hooks, or run on gloo",
        kind);
  }
  /// As bytes, where nothing is computed.
  std::string copied(const Slice& to, const Slice& from, bool computes) const {
    if (to.count != from.count) return sizes_differ;
    return !computes && type_of(to) == type_of(from) ? "" : numbers({to, from});
  }
};

}  // namespace

std::string GpuDevice::refusal(const Buffer& buffer) const {
  if (buffer.place == Place::host)
    return "NCCL's collectives run on the devices: take cluster.through_host out; it is simulated "
           "only";
  if (buffer.start == Start::parameters && !execute::is_number(buffer.type))
    return fmt::format("a GPU does not compute with {}", ddpsim::name_of(buffer.type));
  return "";
}

std::string GpuDevice::refusal(const Job& job, const program::Task& task) const {
  return std::visit(Refusal(job, task), job.deed_of(task).action);
}

}  // namespace ddpsim
