#include "backend/device/cpu/user_code.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/comm_hooks/values.hpp"
#include "backend/device/cpu/piece_values.hpp"
#include "backend/device_error.hpp"
#include "backend/execute/operand_refusal.hpp"
#include "backend/plugin/comm_hook_call.hpp"
#include "backend/plugin/exit_guard.hpp"
#include "backend/plugin/gradient_hook_call.hpp"

namespace ddpsim {

using execute::Doing;
using program::Job;
using program::Plugin;
using program::Slice;

namespace {

/// Does the gradient of the parameter lie there?
bool is_gradient_of(const Job& job, const Slice& slice, std::int32_t parameter) {
  const program::Buffer& buffer = job.buffers[slice.buffer];
  if (buffer.holds == program::Holds::gradient) return buffer.index == parameter;
  return at(parameter) < job.gradients.size() && job.gradients[at(parameter)] == slice;
}

std::optional<Slice> gradient_of(std::int32_t parameter, const Job& job,
                                 std::span<const Slice> among) {
  const auto found = std::ranges::find_if(
      among, [&](const Slice& each) { return is_gradient_of(job, each, parameter); });
  return found == among.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

void UserCode::load(const Workload& workload) {
  workload_ = &workload;
  parameters_.clear();
  for (std::size_t p = 0; p < workload.parameters.size(); ++p)
    parameters_.emplace(workload.parameters[p].name, static_cast<std::int32_t>(p));
}

std::string UserCode::refusal(const Job& job, const program::Actions& actions,
                              const Plugin& plugin) const try {
  const Plugins none;
  const Plugins& plugins = plugins_ != nullptr ? *plugins_ : none;
  const std::string& name = job.labels[at(plugin.code)];
  const auto reads = actions.of(plugin.reads), writes = actions.of(plugin.writes);
  const auto type_of = [&](const Slice& slice) {
    return slice.empty() ? DType::fp32 : job.buffers[slice.buffer].type;
  };
  if (writes.size() != 1) return "the user's code changes one piece of memory";
  if (plugin.what == Plugin::What::gradient) {
    plugins.check_gradient_hook(name);
    if (workload_ == nullptr || plugin.parameter < 0 ||
        at(plugin.parameter) >= workload_->parameters.size() ||
        workload_->parameters[at(plugin.parameter)].elements() != writes.front().count)
      return "its gradient is of no parameter that is loaded";
    const bool wide =
        std::ranges::all_of(reads, [&](const Slice& each) { return type_of(each) == DType::fp32; });
    if (!wide || type_of(writes.front()) != DType::fp32 || type_of(plugin.weight) != DType::fp32)
      return "a CPU calls hooks on fp32 gradients";
    return "";
  }
  const bool before = plugin.what == Plugin::What::before;
  if (reads.empty()) return "the user's code has nothing to read";
  plugins.check_comm_hook(name, type_of(before ? writes.front() : reads.front()));
  const Slice& bucket = before ? reads.front() : writes.front();
  if (!execute::is_number(type_of(bucket)) ||
      bucket.count != (before ? writes.front() : reads.front()).count)
    return "its bucket is not of as many numbers as its payload";
  return "";
} catch (const std::invalid_argument& why) {
  return why.what();
}

void UserCode::run(const Doing& doing, const Plugin& plugin) const {
  if (plugin.what == Plugin::What::gradient) return call_hook(doing, plugin);
  call_comm_hook(doing, plugin);
}

void UserCode::call_hook(const Doing& doing, const Plugin& plugin) const {
  const std::string& name = doing.job.labels[at(plugin.code)];
  const Parameter& parameter = workload_->parameters[at(plugin.parameter)];
  const auto floats_at = [&](const Slice& slice) { return floats(doing.memory.piece(slice)); };
  const std::span<float> values = floats_at(doing.of(plugin.writes).front());
  const int micro_batch = doing.task.micro_batch;
  ddpsim_gradient gradient{};
  gradient.rank = doing.memory.rank();
  gradient.ranks = static_cast<std::int32_t>(doing.job.ranks());
  gradient.micro_batch = micro_batch;
  gradient.dimensions = static_cast<std::int32_t>(parameter.shape.size());
  gradient.name = parameter.name.c_str();
  gradient.layer = workload_->layers[at(parameter.layer)].name.c_str();
  gradient.shape = parameter.shape.data();
  gradient.count = static_cast<std::int64_t>(values.size());
  gradient.values = values.data();
  gradient.parameter = floats_at(plugin.weight).data();
  const auto readable = [&](const std::string& asked) -> OtherGradient {
    const auto found = parameters_.find(asked);
    if (found == parameters_.end()) return {{}, fmt::format("\"{}\", which is none", asked)};
    if (const auto there = gradient_of(found->second, doing.job, doing.of(plugin.reads)))
      return {floats_at(*there), ""};
    if (gradient_of(found->second, doing.job, doing.of(plugin.complete)))
      return {{}, fmt::format("{}, which is being reduced in place", asked)};
    return {{}, fmt::format("{}, which is not ready yet in micro-batch {}", asked, micro_batch)};
  };
  const ExitGuard guard("the plugin's hook", name);
  const std::string problem =
      call_gradient_hook(*plugins_->gradient_hook(name), gradient, readable);
  if (!problem.empty())
    throw DeviceError(
        fmt::format("the plugin's hook \"{}\" on {}: {}", name, parameter.name, problem));
}

void UserCode::call_comm_hook(const Doing& doing, const Plugin& plugin) const {
  const std::string& name = doing.job.labels[at(plugin.code)];
  const auto ranks = static_cast<int>(doing.job.ranks());
  const execute::Piece read = doing.memory.piece(doing.of(plugin.reads).front()),
                       written = doing.memory.piece(doing.of(plugin.writes).front());
  if (plugin.what == Plugin::What::before)
    return call_before(*plugins_, name, InFull(values_of(read)).get(), ranks, written.bytes());
  const InFull bucket(values_of(written));
  call_after(*plugins_, name, read.bytes(), ranks, bucket.get());
  bucket.put_back();
}

}  // namespace ddpsim
