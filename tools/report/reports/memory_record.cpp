#include "tools/report/reports/memory_record.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/schedule/variants.hpp"
#include "tools/report/records/memory_fields.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

double in_gib(Bytes size) {
  return static_cast<double>(size.count) / static_cast<double>(GiB.count);
}

/// What a rank holds at the peak; the parts sum to it.
std::vector<std::pair<const Field*, Bytes>> parts_of_peak(const StepMemory& memory) {
  const PeakParts& peak = memory.at_peak;
  return {{&fields::parameters_bytes, memory.parameters},
          {&fields::module_buffers_bytes, memory.module_buffers},
          {&fields::frozen_bytes, memory.frozen},
          {&fields::inputs_bytes, memory.inputs},
          {&fields::workspaces_bytes, memory.workspaces},
          {&fields::gradients_bytes, peak.gradients},
          {&fields::buckets_bytes, peak.buckets},
          {&fields::optimizer_bytes, memory.optimizer.value_or(Bytes{})},
          {&fields::hook_bytes, peak.comm_hook},
          {&fields::activations_bytes, peak.activations},
          {&fields::working_bytes, peak.working}};
}

/// "activations and optimizer state unknown"; "" where all is known.
std::string unknown_text(const StepMemory& memory) {
  std::vector<std::string> unknown;
  if (!memory.activations) unknown.emplace_back("activations");
  if (!memory.optimizer) unknown.emplace_back("optimizer state");
  return unknown.empty() ? "" : enumerated(unknown) + " unknown";
}

/// Every part of the peak; those that would not be seen beside it are added up.
std::string parts_text(const StepMemory& memory) {
  constexpr double least_share = 0.0005;
  std::string text = unknown_text(memory);
  Bytes others;
  for (const auto& [field, size] : parts_of_peak(memory)) {
    if (!memory.activations && field == &fields::activations_bytes) continue;
    if (!memory.optimizer && field == &fields::optimizer_bytes) continue;
    if (static_cast<double>(size.count) < least_share * static_cast<double>(memory.peak.count))
      others += size;
    else
      text += fmt::format("{}{} {:.3g}", text.empty() ? "" : ", ", field->label, in_gib(size));
  }
  if (others > Bytes{}) text += fmt::format(", others {:.3g}", in_gib(others));
  return text + " GiB";
}

}  // namespace

StepMemory memory_of(const Scenario& scenario, const Training& training, const Schedule& schedule) {
  return step_memory(scenario.workload, scenario.optimizer, training, schedule);
}

StepMemory memory_of(const Scenario& scenario, const Step& step) {
  const Schedule& schedule = step.planned->schedule;
  return step.job().programs.size() > 1
             ? memory_of(scenario, step.training, schedule_of_rank(schedule, 0))
             : memory_of(scenario, step.training, schedule);
}

FieldValue fits_value(const Scenario& scenario, const StepMemory& memory) {
  const Bytes device = scenario.cluster.device.memory;
  if (device <= Bytes{}) return {};
  if (!fits(memory.peak, device)) return false;
  return memory.is_whole() ? FieldValue(true) : FieldValue();
}

Record memory_record(const Scenario& scenario, const StepMemory& memory) {
  const Bytes device = scenario.cluster.device.memory;
  Record record, at_peak;
  for (const auto& [field, size] : parts_of_peak(memory)) at_peak.add(*field, size.count);
  record.add(fields::peak_bytes, memory.peak.count)
      .add(fields::peak_at, name_of(memory.at))
      .add(fields::device_bytes, device > Bytes{} ? FieldValue(device.count) : FieldValue())
      .add(fields::parameters_bytes, memory.parameters.count)
      .add(fields::module_buffers_bytes, memory.module_buffers.count)
      .add(fields::frozen_bytes, memory.frozen.count)
      .add(fields::inputs_bytes, memory.inputs.count)
      .add(fields::workspaces_bytes, memory.workspaces.count)
      .add(fields::gradients_bytes, memory.gradients.count)
      .add(fields::buckets_bytes, memory.buckets.count)
      .add(fields::optimizer_bytes,
           memory.optimizer ? FieldValue(memory.optimizer->count) : FieldValue())
      .add(fields::hook_bytes, memory.comm_hook.count)
      .add(fields::activations_bytes,
           memory.activations ? FieldValue(memory.activations->count) : FieldValue())
      .add(fields::working_bytes, memory.at_peak.working.count)
      .add(fields::memory_at_peak, std::move(at_peak));
  return record;
}

std::string memory_text(const Scenario& scenario, const std::vector<NamedStep>& steps) {
  StepMemory most;
  std::string name;
  for (const NamedStep& each : steps) {
    const StepMemory memory = memory_of(scenario, *each.step);
    if (!name.empty() && memory.peak <= most.peak) continue;
    most = memory;
    name = each.name;
  }
  const Bytes device = scenario.cluster.device.memory;
  return fmt::format("memory per rank: {}{:.3g} GiB{} ({}, {}): {}",
                     most.is_whole() ? "" : "more than ", in_gib(most.peak),
                     device > Bytes{} ? fmt::format(" of {:.3g}", in_gib(device)) : "", name,
                     name_of(most.at), parts_text(most));
}

std::vector<std::string> memory_warnings(const Scenario& scenario,
                                         const std::vector<NamedStep>& steps) {
  std::vector<std::string> warnings;
  const Bytes device = scenario.cluster.device.memory;
  if (device <= Bytes{}) return warnings;
  for (const NamedStep& each : steps) {
    const StepMemory memory = memory_of(scenario, *each.step);
    if (fits(memory.peak, device)) continue;
    const bool within = memory.peak <= device;
    warnings.push_back(fmt::format(
        "{}: {} {}: it takes {:.3g} GiB of a rank, and {} has {:.3g} GiB{}", scenario.name,
        each.name, within ? "may not fit" : "does not fit", in_gib(memory.peak),
        shown_name(scenario.cluster.device.name, "device"), in_gib(device),
        within ? fmt::format(" (fits is judged with {:g} % and {:.2g} GiB to spare)",
                             100 * memory_margin, in_gib(context_memory))
               : ""));
  }
  return warnings;
}

}  // namespace ddpsim
