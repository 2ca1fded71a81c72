// What a CPU cannot do: other number formats than fp32, fp16 and bf16, and operands whose sizes do
// not fit together.

#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "backend/comm_hooks/pairs.hpp"
#include "backend/device/cpu/cpu_device.hpp"
#include "backend/device/cpu/optimizer_update.hpp"
#include "backend/device/cpu/piece_values.hpp"
#include "backend/execute/operand_refusal.hpp"

namespace ddpsim {

using namespace program;  // NOLINT: the names of all actions

namespace {

constexpr std::int32_t most_threads = 1024;

class Refusal : public execute::OperandRefusal {
 public:
  Refusal(const Job& job, const Task& task, const UserCode& user_code)
      : OperandRefusal(job, task, "a CPU", std::numeric_limits<std::int64_t>::max()),
        user_code_(user_code) {}

  using OperandRefusal::operator();
  std::string operator()(const Chunked& chunked) const {
    if (task_.stream != 0) return "only the host hands a layer's output to threads";
    return chunked.pieces >= 1 && chunked.threads >= 1 && chunked.threads <= most_threads
               ? ""
               : fmt::format("a pool has 1 to {} threads, and something to do", most_threads);
  }
  std::string operator()(const Compute& compute) const {
    for (const Slice& each : slices(compute.fills))
      if (!wide(each)) return "a CPU computes gradients in fp32";
    if (const std::string why = of_rows(compute); !why.empty()) return why;
    const std::optional<Gemm>& gemm = job_.works[task_.work].gemm;
    if (!gemm) return compute.result.empty() ? "" : "it has a result, and is no product";
    if (const std::string why = product(*gemm); !why.empty()) return why;
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
  std::string operator()(const TakeRows& take) const {
    return refusal_of_rows(job_, take.rows, take.to, take.from);
  }
  std::string operator()(const AddRows& add) const {
    return refusal_of_rows(job_, add.rows, add.from, add.to);
  }
  std::string operator()(const Select& select) const {
    if (select.from.count > INT32_MAX) return "indices have 32 bits";
    return pairs(select.pairs, select.from, 1);
  }
  std::string operator()(const Spread& spread) const {
    return pairs(spread.pairs, spread.to, members(spread.of));
  }
  std::string operator()(const Clip& clip) const {
    for (const Slice& each : slices(clip.gradients))
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
  std::string operator()(const Update& update) const {
    if (const std::string why = this->update(update); !why.empty()) return why;
    for (const Operands& operands : {update.parameters, update.gradients, update.state})
      for (const Slice& each : slices(operands))
        if (!wide(each)) return "a CPU updates parameters in fp32";
    return "";
  }
  std::string operator()(const Move& move) const {
    return type_of(move.to) == type_of(move.from) && move.to.count == move.from.count
               ? ""
               : sizes_differ;
  }

 private:
  std::string of_rows(const Compute& compute) const {
    const auto fills = slices(compute.fills), rows = slices(compute.rows);
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

  bool wide(const Slice& slice) const { return type_of(slice) == DType::fp32; }
  std::string pairs(const Slice& pairs, const Slice& values, std::int64_t ranks) const {
    const auto each = static_cast<std::int64_t>(wire_size(1, type_of(values)));
    if (size_of(type_of(pairs)) != Bytes{1} || pairs.count % (each * ranks) != 0)
      return "its pairs are not bytes, as many from each rank";
    return numbers({values});
  }

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
