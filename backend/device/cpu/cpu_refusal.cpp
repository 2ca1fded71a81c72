// What a CPU cannot do: other number formats than fp32, fp16 and bf16, and operands whose sizes do
// not fit together.

#include <cmath>
#include <cstdint>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "backend/comm_hooks/pairs.hpp"
#include "backend/comm_hooks/quantization.hpp"
#include "backend/device/cpu/cpu_device.hpp"
#include "backend/device/cpu/optimizer_update.hpp"
#include "backend/device/cpu/piece_values.hpp"

namespace ddpsim {

using namespace program;  // NOLINT: the names of all actions

namespace {

constexpr std::int32_t most_threads = 1024;
constexpr std::int64_t most_values = std::int64_t{1} << 40;  // of a matrix

class Refusal {
 public:
  Refusal(const Job& job, const Task& task, const UserCode& user_code)
      : job_(job), task_(task), user_code_(user_code) {}

  std::string operator()(const Wait&) const { return ""; }
  std::string operator()(const Meet&) const { return ""; }
  std::string operator()(const Pause&) const { return ""; }
  std::string operator()(const Collective&) const { return ""; }
  std::string operator()(const Send&) const { return ""; }
  std::string operator()(const Receive&) const { return ""; }

  std::string operator()(const Call&) const { return ""; }
  std::string operator()(const Chunked& chunked) const {
    if (task_.stream != 0) return "only the host hands a layer's output to threads";
    return chunked.pieces >= 1 && chunked.threads >= 1 && chunked.threads <= most_threads
               ? ""
               : fmt::format("a pool has 1 to {} threads, and something to do", most_threads);
  }
  std::string operator()(const Compute& compute) const {
    for (const Slice& each : job_.actions_of(task_).of(compute.fills))
      if (!wide(each)) return "a CPU computes gradients in fp32";
    if (const std::string why = of_rows(compute); !why.empty()) return why;
    const std::optional<Gemm>& gemm = job_.works[task_.work].gemm;
    if (!gemm) return compute.result.empty() ? "" : "it has a result, and is no product";
    if (!is_matrix(gemm->m * gemm->batch, gemm->n) || !is_matrix(gemm->m * gemm->batch, gemm->k) ||
        !is_matrix(gemm->k * gemm->batch, gemm->n))
      return "its product has no size that a CPU can compute";
    if (!compute.weight.empty() &&
        (!wide(compute.weight) || gemm->batch != 1 || compute.weight.count != gemm->k * gemm->n))
      return "its weight is no fp32 matrix of its product";
    if (!compute.result.empty() &&
        (!wide(compute.result) || compute.result.count != gemm->batch * gemm->m * gemm->n))
      return "its result is no fp32 matrix of its product";
    return "";
  }
  std::string operator()(const Scale& scale) const { return alike(scale.to, scale.from); }
  std::string operator()(const Fill& fill) const {
    if (fill.value == 0 || type_of(fill.to) == DType::fp64) return "";
    return numbers({fill.to});
  }
  std::string operator()(const Combine& combine) const {
    const std::string left = alike(combine.to, combine.left);
    return left.empty() ? alike(combine.to, combine.right) : left;
  }
  std::string operator()(const Cast& cast) const { return alike(cast.to, cast.from); }
  std::string operator()(const TakeRows& take) const {
    return refusal_of_rows(job_, take.rows, take.to, take.from);
  }
  std::string operator()(const AddRows& add) const {
    return refusal_of_rows(job_, add.rows, add.from, add.to);
  }
  std::string operator()(const Pack& pack) const {
    std::optional<DType> type;
    bool converts = pack.factor != 1 || pack.mean_over != nobody;
    for (const Operands& operands : {pack.to, pack.from})
      for (const Slice& each : job_.actions_of(task_).of(operands)) {
        if (type && *type != type_of(each)) converts = true;
        type = type_of(each);
      }
    if (!converts) return "";
    for (const Operands& operands : {pack.to, pack.from})
      for (const Slice& each : job_.actions_of(task_).of(operands))
        if (!is_number(type_of(each))) return no_number(each);
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
    return numbers({multiply.to, multiply.left, multiply.right});
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
                        members(dequantize.mean_over));
  }
  std::string operator()(const Select& select) const {
    if (select.from.count > INT32_MAX) return "indices have 32 bits";
    return pairs(select.pairs, select.from, 1);
  }
  std::string operator()(const Spread& spread) const {
    return pairs(spread.pairs, spread.to, members(spread.of));
  }
  std::string operator()(const Clip& clip) const {
    for (const Slice& each : job_.actions_of(task_).of(clip.gradients))
      if (!wide(each)) return "a CPU clips gradients in fp32";
    return "";
  }
  std::string operator()(const Noise& noise) const {
    if (!wide(noise.to)) return "a CPU adds noise in fp32";
    return alike(noise.to, noise.from);
  }
  std::string operator()(const Plugin& plugin) const {
    return user_code_.refusal(job_, job_.actions_of(task_), plugin);
  }
  std::string operator()(const Touch&) const { return ""; }
  std::string operator()(const Update& update) const {
    const Actions& actions = job_.actions_of(task_);
    const auto parameters = actions.of(update.parameters), gradients = actions.of(update.gradients),
               state = actions.of(update.state);
    if (parameters.size() != gradients.size()) return "it has not a gradient for each parameter";
    if (update.optimizer != Optimizer::none && !runs_on_ranks(update.optimizer))
      return fmt::format("a CPU does not compute the update of {}", name_of(update.optimizer));
    const std::size_t kept = state_slices(update.optimizer);
    if (kept > 0 && state.size() != kept * parameters.size())
      return "it has not the state of each parameter";
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!wide(parameters[i]) || !wide(gradients[i])) return "a CPU updates parameters in fp32";
      if (parameters[i].count != gradients[i].count) return sizes_differ;
      for (std::size_t k = 0; k < kept; ++k)
        if (!wide(state[kept * i + k]) || state[kept * i + k].count != parameters[i].count)
          return "the state of a parameter has another size";
    }
    return "";
  }
  std::string operator()(const Move& move) const {
    return type_of(move.to) == type_of(move.from) && move.to.count == move.from.count
               ? ""
               : sizes_differ;
  }

 private:
  std::string of_rows(const Compute& compute) const {
    const auto fills = job_.actions_of(task_).of(compute.fills),
               rows = job_.actions_of(task_).of(compute.rows);
    if (!rows.empty() && rows.size() != 2 * fills.size())
      return "it does not say of each gradient which rows it has";
    for (std::size_t i = 0; 2 * i < rows.size(); ++i) {
      Slice some = rows[2 * i + 1];  // one row, then all that it chooses
      if (rows[2 * i].empty() && some.empty()) continue;
      const Bytes size = rows[2 * i].count * size_of(type_of(rows[2 * i]));
      some.count *= size.count / 8;
      if (const std::string why = refusal_of_rows(job_, rows[2 * i], some, fills[i]); !why.empty())
        return why;
      if (some.count > fills[i].count) return "it has fewer rows than it is told to fill";
    }
    return "";
  }

  static constexpr const char* sizes_differ = "its operands have not one size";

  DType type_of(const Slice& slice) const {
    return slice.buffer == no_buffer ? DType::fp32 : job_.buffers[slice.buffer].type;
  }
  bool wide(const Slice& slice) const { return type_of(slice) == DType::fp32; }
  static bool is_matrix(std::int64_t rows, std::int64_t columns) {
    return rows > 0 && columns > 0 && rows <= most_values && columns <= most_values / rows;
  }
  std::string chunks(const Slice& packed, const Operands& tensors) const {
    for (const Slice& each : job_.actions_of(task_).of(tensors)) {
      if (type_of(each) == type_of(packed)) continue;
      if (!is_number(type_of(each))) return no_number(each);
      if (!is_number(type_of(packed))) return no_number(packed);
    }
    return "";
  }
  std::string no_number(const Slice& slice) const {
    return fmt::format("a CPU does not compute with {}", ddpsim::name_of(type_of(slice)));
  }
  std::string numbers(std::initializer_list<Slice> slices) const {
    for (const Slice& each : slices)
      if (!is_number(type_of(each))) return no_number(each);
    return "";
  }
  std::string alike(const Slice& to, const Slice& from) const {
    if (to.count != from.count) return sizes_differ;
    return numbers({to, from});
  }
  std::int64_t members(std::int16_t communicator) const {
    return static_cast<std::int64_t>(job_.communicators[at(communicator)].groups.front().size());
  }
  /// Scales and codes of `ranks` ranks for these values.
  std::string quantization(const Slice& scales, const Slice& codes, const Slice& values,
                           std::int64_t channel, std::int64_t ranks) const {
    if (channel < 0) return "a channel has some elements";
    const QuantizationChannels channels = quantization_channels(channel, values.count);
    if (!wide(scales) || scales.count != 2 * channels.count * ranks)
      return "its scales are not two fp32 numbers for each channel";
    if (codes.buffer != no_buffer &&
        (size_of(type_of(codes)) != Bytes{1} || codes.count != channels.padded() * ranks))
      return "its codes are not a byte for each element";
    return numbers({values});
  }
  std::string pairs(const Slice& pairs, const Slice& values, std::int64_t ranks) const {
    const auto each = static_cast<std::int64_t>(wire_size(1, type_of(values)));
    if (size_of(type_of(pairs)) != Bytes{1} || pairs.count % (each * ranks) != 0)
      return "its pairs are not bytes, as many from each rank";
    return numbers({values});
  }

  const Job& job_;
  const Task& task_;
  const UserCode& user_code_;
};

}  // namespace

std::string CpuDevice::refusal(const Buffer& buffer) const {
  return buffer.start == Start::parameters && buffer.type != DType::fp32
             ? "a CPU holds parameters in fp32"
             : "";
}

std::string CpuDevice::refusal(const Job& job, const Task& task) const {
  return std::visit(Refusal(job, task, user_code_), job.deed_of(task).action);
}

}  // namespace ddpsim
