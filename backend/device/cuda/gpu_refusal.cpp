// What a GPU cannot do: other number formats than fp32, fp16 and bf16, operands whose sizes do not
// fit together, and what is done with the host's memory.

#include <initializer_list>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "backend/comm_hooks/quantization.hpp"
#include "backend/device/cuda/gpu_device.hpp"

namespace ddpsim {

using namespace program;  // NOLINT: the names of all actions

namespace {

constexpr std::int64_t most_values = std::int64_t{1} << 40;  // of a matrix
constexpr std::int64_t longest_side = std::int64_t{1} << 31;

class Refusal {
 public:
  Refusal(const Job& job, const program::Task& task) : job_(job), task_(task) {}

  std::string operator()(const Wait&) const { return ""; }
  std::string operator()(const Meet&) const { return ""; }
  std::string operator()(const Pause&) const { return ""; }
  std::string operator()(const Collective&) const { return ""; }
  std::string operator()(const Send&) const { return ""; }
  std::string operator()(const Receive&) const { return ""; }
  std::string operator()(const Call&) const { return ""; }

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
      if (!is_gpu_number(type_of(each))) return no_number(each);
    const Work& work = job_.works[task_.work];
    const std::optional<Gemm>& gemm = work.gemm;
    if (!gemm) return compute.result.empty() ? "" : "it has a result, and is no product";
    if (!is_gpu_number(stored_as(work.type)))
      return fmt::format("the nccl backend multiplies no {} on a GPU", ddpsim::name_of(work.type));
    if (!is_matrix(gemm->m * gemm->batch, gemm->n) || !is_matrix(gemm->m * gemm->batch, gemm->k) ||
        !is_matrix(gemm->k * gemm->batch, gemm->n))
      return "its product has no size that a GPU can compute";
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
  std::string operator()(const Cast& cast) const { return alike(cast.to, cast.from); }
  std::string operator()(const Pack& pack) const {
    const bool scales = pack.factor != 1 || pack.mean_over != nobody;
    std::optional<DType> type;
    bool converts = scales;
    for (const Operands& operands : {pack.to, pack.from})
      for (const Slice& each : slices(operands)) {
        if (type && *type != type_of(each)) converts = true;
        type = type_of(each);
      }
    if (!converts) return "";
    for (const Operands& operands : {pack.to, pack.from})
      for (const Slice& each : slices(operands))
        if (!is_gpu_number(type_of(each))) return no_number(each);
    return "";
  }
  std::string operator()(const Chunk& chunk) const { return chunks(chunk.to, chunk.from); }
  std::string operator()(const Unchunk& unchunk) const { return chunks(unchunk.from, unchunk.to); }
  std::string operator()(const TakePart& take) const { return chunks(take.to, take.from); }
  std::string operator()(const Multiply& multiply) const {
    if (!is_matrix(multiply.m, multiply.n) || !is_matrix(multiply.m, multiply.k) ||
        !is_matrix(multiply.k, multiply.n) || multiply.to.count != multiply.m * multiply.n ||
        multiply.left.count != multiply.m * multiply.k ||
        multiply.right.count != multiply.k * multiply.n)
      return "its operands are not of the sizes of the product";
    if (type_of(multiply.left) != type_of(multiply.to) ||
        type_of(multiply.right) != type_of(multiply.to))
      return formats_differ;
    return numbers({multiply.to});
  }
  std::string operator()(const Orthogonalize& orthogonalize) const {
    if (!is_matrix(orthogonalize.rows, orthogonalize.columns) ||
        orthogonalize.columns > orthogonalize.rows ||
        orthogonalize.matrix.count != orthogonalize.rows * orthogonalize.columns)
      return "its matrix has other sizes, or more columns than rows";
    return numbers({orthogonalize.matrix});
  }
  std::string operator()(const Draw& draw) const { return numbers({draw.to}); }
  std::string operator()(const Observe& observe) const {
    return quantization(observe.scales, {}, observe.from, observe.channel, 1);
  }
  std::string operator()(const Quantize& quantize) const {
    return quantization(quantize.scales, quantize.codes, quantize.from, quantize.channel, 1);
  }
  std::string operator()(const Dequantize& dequantize) const {
    if (dequantize.mean_over == nobody) return "it does not say whose codes they are";
    return quantization(dequantize.scales, dequantize.codes, dequantize.to, dequantize.channel,
                        static_cast<std::int64_t>(
                            job_.communicators[at(dequantize.mean_over)].groups.front().size()));
  }
  std::string operator()(const Touch&) const { return ""; }
  std::string operator()(const Update& update) const {
    const auto parameters = slices(update.parameters), gradients = slices(update.gradients),
               state = slices(update.state);
    if (parameters.size() != gradients.size()) return "it has not a gradient for each parameter";
    if (update.optimizer == Optimizer::none) return "";
    if (!runs_on_ranks(update.optimizer))
      return fmt::format("a GPU does not compute the update of {}", name_of(update.optimizer));
    const std::size_t kept = state_slices(update.optimizer);
    if (kept > 0 && state.size() != kept * parameters.size())
      return "it has not the state of each parameter";
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (const std::string why = alike(parameters[i], gradients[i]); !why.empty()) return why;
      if (type_of(parameters[i]) != type_of(gradients[i])) return formats_differ;
      for (std::size_t k = 0; k < kept; ++k)
        if (type_of(state[kept * i + k]) != type_of(parameters[i]) ||
            state[kept * i + k].count != parameters[i].count)
          return "the state of a parameter has another size or number format";
    }
    return "";
  }
  std::string operator()(const Move& move) const { return copied(move.to, move.from, false); }

 private:
  static constexpr const char* sizes_differ = "its operands have not one size";
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
  std::span<const Slice> slices(const Operands& operands) const {
    return job_.actions_of(task_).of(operands);
  }
  DType type_of(const Slice& slice) const {
    return slice.buffer == no_buffer ? DType::fp32 : job_.buffers[slice.buffer].type;
  }
  static bool is_matrix(std::int64_t rows, std::int64_t columns) {
    return rows > 0 && columns > 0 && rows < longest_side && columns < longest_side &&
           columns <= most_values / rows;
  }
  std::string chunks(const Slice& packed, const Operands& tensors) const {
    for (const Slice& each : slices(tensors)) {
      if (type_of(each) == type_of(packed)) continue;
      if (!is_gpu_number(type_of(each))) return no_number(each);
      if (!is_gpu_number(type_of(packed))) return no_number(packed);
    }
    return "";
  }
  std::string no_number(const Slice& slice) const {
    return fmt::format("a GPU does not compute with {}", ddpsim::name_of(type_of(slice)));
  }
  std::string numbers(std::initializer_list<Slice> slices) const {
    for (const Slice& each : slices)
      if (!is_gpu_number(type_of(each))) return no_number(each);
    return "";
  }
  std::string alike(const Slice& to, const Slice& from) const {
    if (to.count != from.count) return sizes_differ;
    return numbers({to, from});
  }
  /// As bytes, where nothing is computed.
  std::string copied(const Slice& to, const Slice& from, bool computes) const {
    if (to.count != from.count) return sizes_differ;
    return !computes && type_of(to) == type_of(from) ? "" : numbers({to, from});
  }
  /// Scales and codes of `ranks` ranks for these values.
  std::string quantization(const Slice& scales, const Slice& codes, const Slice& values,
                           std::int64_t channel, std::int64_t ranks) const {
    if (channel < 0) return "a channel has some elements";
    const QuantizationChannels channels = quantization_channels(channel, values.count);
    if (type_of(scales) != DType::fp32 || scales.count != 2 * channels.count * ranks)
      return "its scales are not two fp32 numbers for each channel";
    if (codes.buffer != no_buffer &&
        (size_of(type_of(codes)) != Bytes{1} || codes.count != channels.padded() * ranks))
      return "its codes are not a byte for each element";
    return numbers({values});
  }

  const Job& job_;
  const program::Task& task_;
};

}  // namespace

std::string GpuDevice::refusal(const Buffer& buffer) const {
  if (buffer.place == Place::host)
    return "NCCL's collectives run on the devices: take cluster.through_host out; it is simulated "
           "only";
  if (buffer.start == Start::parameters && !is_gpu_number(buffer.type))
    return fmt::format("a GPU does not compute with {}", ddpsim::name_of(buffer.type));
  return "";
}

std::string GpuDevice::refusal(const Job& job, const program::Task& task) const {
  return std::visit(Refusal(job, task), job.deed_of(task).action);
}

}  // namespace ddpsim
