#include "backend/execute/operand_refusal.hpp"

#include <optional>

#include <fmt/format.h>

#include "backend/comm_hooks/quantization.hpp"
#include "model/workload/optimizer.hpp"

namespace ddpsim::execute {

using program::Operands;
using program::Slice;

namespace {

constexpr std::int64_t most_values = std::int64_t{1} << 40;  // of a matrix

}  // namespace

std::string OperandRefusal::operator()(const program::Pack& pack) const {
  std::optional<DType> type;
  bool converts = pack.factor != 1 || pack.mean_over != nobody;
  for (const Operands& operands : {pack.to, pack.from})
    for (const Slice& each : slices(operands)) {
      if (type && *type != type_of(each)) converts = true;
      type = type_of(each);
    }
  if (!converts) return "";
  for (const Operands& operands : {pack.to, pack.from})
    for (const Slice& each : slices(operands))
      if (!is_number(type_of(each))) return no_number(each);
  return "";
}

std::string OperandRefusal::operator()(const program::Chunk& chunk) const {
  return chunks(chunk.to, chunk.from);
}

std::string OperandRefusal::operator()(const program::Unchunk& unchunk) const {
  return chunks(unchunk.from, unchunk.to);
}

std::string OperandRefusal::operator()(const program::TakePart& take) const {
  return chunks(take.to, take.from);
}

std::string OperandRefusal::operator()(const program::Multiply& multiply) const {
  if (!is_matrix(multiply.m, multiply.n) || !is_matrix(multiply.m, multiply.k) ||
      !is_matrix(multiply.k, multiply.n) || multiply.to.count != multiply.m * multiply.n ||
      multiply.left.count != multiply.m * multiply.k ||
      multiply.right.count != multiply.k * multiply.n)
    return "its operands are not of the sizes of the product";
  return numbers({multiply.to, multiply.left, multiply.right});
}

std::string OperandRefusal::operator()(const program::Orthogonalize& orthogonalize) const {
  if (!is_matrix(orthogonalize.rows, orthogonalize.columns) ||
      orthogonalize.columns > orthogonalize.rows ||
      orthogonalize.matrix.count != orthogonalize.rows * orthogonalize.columns)
    return "its matrix has other sizes, or more columns than rows";
  return numbers({orthogonalize.matrix});
}

std::string OperandRefusal::operator()(const program::Observe& observe) const {
  return quantization(observe.scales, {}, observe.from, observe.channel, 1);
}

std::string OperandRefusal::operator()(const program::Quantize& quantize) const {
  return quantization(quantize.scales, quantize.codes, quantize.from, quantize.channel, 1);
}

std::string OperandRefusal::operator()(const program::Dequantize& dequantize) const {
  if (dequantize.mean_over == nobody) return "it does not say whose codes they are";
  return quantization(dequantize.scales, dequantize.codes, dequantize.to, dequantize.channel,
                      members(dequantize.mean_over));
}

bool OperandRefusal::is_matrix(std::int64_t rows, std::int64_t columns) const {
  return rows > 0 && columns > 0 && rows < longest_side_ && columns < longest_side_ &&
         columns <= most_values / rows;
}

std::string OperandRefusal::no_number(const Slice& slice) const {
  return fmt::format("{} does not compute with {}", device_, ddpsim::name_of(type_of(slice)));
}

std::string OperandRefusal::numbers(std::initializer_list<Slice> slices) const {
  for (const Slice& each : slices)
    if (!is_number(type_of(each))) return no_number(each);
  return "";
}

std::string OperandRefusal::alike(const Slice& to, const Slice& from) const {
  if (to.count != from.count) return sizes_differ;
  return numbers({to, from});
}

std::string OperandRefusal::product(const Gemm& gemm) const {
  return is_matrix(gemm.m * gemm.batch, gemm.n) && is_matrix(gemm.m * gemm.batch, gemm.k) &&
                 is_matrix(gemm.k * gemm.batch, gemm.n)
             ? ""
             : fmt::format("its product has no size that {} can compute", device_);
}

std::string OperandRefusal::update(const program::Update& update) const {
  const auto parameters = slices(update.parameters), gradients = slices(update.gradients),
             state = slices(update.state);
  if (parameters.size() != gradients.size()) return "it has not a gradient for each parameter";
  if (update.optimizer != Optimizer::none && !runs_on_ranks(update.optimizer))
    return fmt::format("{} does not compute the update of {}", device_, name_of(update.optimizer));
  const std::size_t kept = state_slices(update.optimizer);
  if (kept > 0 && state.size() != kept * parameters.size())
    return "it has not the state of each parameter";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].count != gradients[i].count) return sizes_differ;
    for (std::size_t k = 0; k < kept; ++k)
      if (state[kept * i + k].count != parameters[i].count)
        return "the state of a parameter has another size";
  }
  return "";
}

std::string OperandRefusal::chunks(const Slice& packed, const Operands& tensors) const {
  for (const Slice& each : slices(tensors)) {
    if (type_of(each) == type_of(packed)) continue;
    if (!is_number(type_of(each))) return no_number(each);
    if (!is_number(type_of(packed))) return no_number(packed);
  }
  return "";
}

/// Scales and codes of `ranks` ranks for these values.
std::string OperandRefusal::quantization(const Slice& scales, const Slice& codes,
                                         const Slice& values, std::int64_t channel,
                                         std::int64_t ranks) const {
  if (channel < 0) return "a channel has some elements";
  const QuantizationChannels channels = quantization_channels(channel, values.count);
  if (type_of(scales) != DType::fp32 || scales.count != 2 * channels.count * ranks)
    return "its scales are not two fp32 numbers for each channel";
  if (codes.buffer != program::no_buffer &&
      (size_of(type_of(codes)) != Bytes{1} || codes.count != channels.padded() * ranks))
    return "its codes are not a byte for each element";
  return numbers({values});
}

}  // namespace ddpsim::execute
