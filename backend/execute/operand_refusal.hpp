#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "model/program/job.hpp"

namespace ddpsim::execute {

/// Do devices compute with numbers of this format?
constexpr bool is_number(DType type) {
  return type == DType::fp32 || type == DType::fp16 || type == DType::bf16;
}

/// What no device does with the operands of a task: numbers of other formats, and sizes that do not
/// fit together. A device derives from it, and says what else it does not do.
class OperandRefusal {
 public:
  /// `device` as a sentence names it: "a CPU". A side of a matrix is below `longest_side`.
  OperandRefusal(const program::Job& job, const program::Task& task, std::string_view device,
                 std::int64_t longest_side)
      : job_(job), task_(task), device_(device), longest_side_(longest_side) {}

  // Each is empty where the device can do it.
  std::string operator()(const program::Wait&) const { return ""; }
  std::string operator()(const program::Meet&) const { return ""; }
  std::string operator()(const program::Pause&) const { return ""; }
  std::string operator()(const program::Collective&) const { return ""; }
  std::string operator()(const program::Send&) const { return ""; }
  std::string operator()(const program::Receive&) const { return ""; }
  std::string operator()(const program::Call&) const { return ""; }
  std::string operator()(const program::Touch&) const { return ""; }
  std::string operator()(const program::Cast& cast) const { return alike(cast.to, cast.from); }
  std::string operator()(const program::Pack& pack) const;
  std::string operator()(const program::Chunk& chunk) const;
  std::string operator()(const program::Unchunk& unchunk) const;
  std::string operator()(const program::TakePart& take) const;
  std::string operator()(const program::Multiply& multiply) const;
  std::string operator()(const program::Orthogonalize& orthogonalize) const;
  std::string operator()(const program::Draw& draw) const { return numbers({draw.to}); }
  std::string operator()(const program::Observe& observe) const;
  std::string operator()(const program::Quantize& quantize) const;
  std::string operator()(const program::Dequantize& dequantize) const;

 protected:
  static constexpr const char* sizes_differ = "its operands have not one size";

  std::span<const program::Slice> slices(const program::Operands& operands) const {
    return job_.actions_of(task_).of(operands);
  }
  DType type_of(const program::Slice& slice) const {
    return slice.buffer == program::no_buffer ? DType::fp32 : job_.buffers[slice.buffer].type;
  }
  std::int64_t members(std::int16_t communicator) const {
    return static_cast<std::int64_t>(job_.communicators[at(communicator)].groups.front().size());
  }
  /// Is a matrix of these sides of a size that the device computes with?
  bool is_matrix(std::int64_t rows, std::int64_t columns) const;
  std::string numbers(std::initializer_list<program::Slice> slices) const;
  /// Are both of one size, and of numbers?
  std::string alike(const program::Slice& to, const program::Slice& from) const;
  /// The sides of a kernel's product; what a device makes of them it says itself.
  std::string product(const Gemm& gemm) const;
  /// That the sizes of an update fit together.
  std::string update(const program::Update& update) const;

  const program::Job& job_;
  const program::Task& task_;

 private:
  std::string no_number(const program::Slice& slice) const;
  std::string chunks(const program::Slice& packed, const program::Operands& tensors) const;
  std::string quantization(const program::Slice& scales, const program::Slice& codes,
                           const program::Slice& values, std::int64_t channel,
                           std::int64_t ranks) const;

  std::string_view device_;
  std::int64_t longest_side_;
};

}  // namespace ddpsim::execute
