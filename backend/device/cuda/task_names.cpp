#include "backend/device/cuda/task_names.hpp"

#include <fmt/format.h>

#include "model/program/action.hpp"

namespace ddpsim {
namespace {

/// The kernel's own name; empty: the workload has none there.
std::string kernel_name(const program::Origin& origin, const Workload& workload) {
  if (origin.layer == nobody || at(origin.layer) >= workload.layers.size()) return "";
  const Layer& layer = workload.layers[at(origin.layer)];
  const auto& kernels = origin.pass == program::Pass::backward ? layer.backward : layer.forward;
  return at(origin.kernel) < kernels.size() ? kernels[at(origin.kernel)].name : "";
}

}  // namespace

std::string task_name(const program::Job& job, const program::Task& task,
                      const Workload* workload) {
  const auto& [action, origin] = job.deed_of(task);
  if (std::holds_alternative<program::Compute>(action)) {
    const std::string text = origin.pass == program::Pass::backward ? "backward" : "forward";
    const std::string kernel = workload == nullptr ? "" : kernel_name(origin, *workload);
    return kernel.empty() ? text : text + " " + kernel;
  }
  std::string text(origin.label != 0 ? job.labels[at(origin.label)]
                                     : std::string(name_of(job.works[task.work].operation)));
  if (const auto* call = std::get_if<program::Call>(&action);
      call != nullptr && call->what == program::Call::What::hook)
    text = "hook";
  if (origin.parameter != nobody && workload != nullptr &&
      at(origin.parameter) < workload->parameters.size())
    return text + " " + workload->parameters[at(origin.parameter)].name;
  if (origin.group != nobody && at(origin.group) < job.groups.size())
    return text + fmt::format(" bucket {} ({})", origin.group,
                              to_string(job.groups[at(origin.group)].size));
  return text;
}

}  // namespace ddpsim
