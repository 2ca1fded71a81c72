#include "tools/report/reports/memory_record.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/timeline/memory_times.hpp"
#include "tools/report/records/memory_fields.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

double in_gib(Bytes size) {
  return static_cast<double>(size.count) / static_cast<double>(GiB.count);
}

using program::Holds;
using program::MemoryByKind;

/// A part of what a rank holds, as people know it.
struct Part {
  const Field* field;
  Bytes size;
};

std::vector<Part> parts_of(const MemoryByKind& memory) {
  const Bytes sent = memory[Holds::bucket] + memory[Holds::scattered] + memory[Holds::note];
  return {{&fields::parameters_bytes, memory[Holds::parameter] + memory[Holds::gathered]},
          {&fields::module_buffers_bytes, memory[Holds::module_buffer]},
          {&fields::frozen_bytes, memory[Holds::frozen]},
          {&fields::inputs_bytes, memory[Holds::input]},
          {&fields::workspaces_bytes, memory[Holds::workspace]},
          {&fields::gradients_bytes, memory[Holds::gradient]},
          {&fields::buckets_bytes, sent},
          {&fields::optimizer_bytes, memory[Holds::optimizer]},
          {&fields::hook_bytes, memory[Holds::hook]},
          {&fields::activations_bytes, memory[Holds::activation]},
          {&fields::working_bytes, memory[Holds::working]}};
}

/// When the peak is reached, on a rank that has that program; nothing of a step without times.
FieldValue peak_ms(const Step& step, const StepMemory& memory) {
  if (step.times.classes.empty()) return {};
  const auto& kinds = step.job().program_of;
  const auto rank = static_cast<std::size_t>(std::find(kinds.begin(), kinds.end(), memory.program) -
                                             kinds.begin());
  return in_ms(issued_at(step.times.classes[step.times.class_of[rank]], memory.before));
}

/// "backward of layers.3"
std::string moment_text(const Scenario& scenario, const StepMemory& memory) {
  std::string text(name_of(memory.at));
  if (memory.layer != nobody) text += " of " + scenario.workload.layers[at(memory.layer)].name;
  return text;
}

/// "activations and optimizer state unknown"; "" where all is known.
std::string unknown_text(const StepMemory& memory) {
  std::vector<std::string> unknown;
  if (!memory.knows_activations) unknown.emplace_back("activations");
  if (!memory.knows_optimizer) unknown.emplace_back("optimizer state");
  return unknown.empty() ? "" : enumerated(unknown) + " unknown";
}

/// Every part of the peak; those that would not be seen beside it are added up.
std::string parts_text(const StepMemory& memory) {
  constexpr double least_share = 0.0005;
  std::string text = unknown_text(memory);
  Bytes others;
  const bool packs = memory.at_peak[Holds::scattered] > memory.at_peak[Holds::bucket];
  for (const auto& [field, size] : parts_of(memory.at_peak)) {
    const std::string_view label =
        packs && field == &fields::buckets_bytes ? "packed gradients" : field->label;
    if (!memory.knows_activations && field == &fields::activations_bytes) continue;
    if (!memory.knows_optimizer && field == &fields::optimizer_bytes) continue;
    if (static_cast<double>(size.count) < least_share * static_cast<double>(memory.peak.count))
      others += size;
    else
      text += fmt::format("{}{} {:.3g}", text.empty() ? "" : ", ", label, in_gib(size));
  }
  if (others > Bytes{}) text += fmt::format(", others {:.3g}", in_gib(others));
  return text + " GiB";
}

/// Of a CPU's memory PyTorch keeps no pools.
bool has_pools(const Scenario& scenario) {
  return !scenario.cluster.device.synchronous;
}

/// ", 74.1 reserved"; "" where one pool holds everything.
std::string reserved_text(const Scenario& scenario, const StepMemory& memory) {
  constexpr double least_share = 0.005;
  const Bytes beyond = memory.reserved - memory.peak;
  const bool shows =
      has_pools(scenario) && beyond > program::memory_segment &&
      static_cast<double>(beyond.count) > least_share * static_cast<double>(memory.peak.count);
  return shows ? fmt::format(", {:.3g} reserved", in_gib(memory.reserved)) : "";
}

/// `name`: whose it is, and a comma.
std::string memory_line(const Scenario& scenario, const std::string& name,
                        const StepMemory& memory) {
  const Bytes device = scenario.cluster.device.memory;
  return fmt::format(
      "memory per rank: {}{:.3g} GiB{}{} ({}{}): {}", memory.is_whole() ? "" : "more than ",
      in_gib(memory.peak), device > Bytes{} ? fmt::format(" of {:.3g}", in_gib(device)) : "",
      reserved_text(scenario, memory), name, moment_text(scenario, memory), parts_text(memory));
}

}  // namespace

StepMemory memory_of(const Scenario& scenario, const Step& step) {
  return step_memory(scenario.workload, scenario.optimizer, step.training, step.job());
}

StepMemory memory_of(const Scenario& scenario, const Result& result) {
  return result.memory != nullptr ? *result.memory : memory_of(scenario, *result.step);
}

FieldValue fits_value(const Scenario& scenario, const StepMemory& memory) {
  const Bytes device = scenario.cluster.device.memory;
  if (device <= Bytes{}) return {};
  if (!fits(memory.peak, device)) return false;
  return memory.is_whole() ? FieldValue(true) : FieldValue();
}

Record memory_record(const Scenario& scenario, const Step& step, const StepMemory& memory) {
  const Bytes device = scenario.cluster.device.memory;
  Record record, at_peak;
  for (const auto& [field, size] : parts_of(memory.at_peak)) at_peak.add(*field, size.count);
  record.add(fields::peak_bytes, memory.peak.count)
      .add(fields::reserved_bytes,
           has_pools(scenario) ? FieldValue(memory.reserved.count) : FieldValue())
      .add(fields::peak_at, name_of(memory.at))
      .add(fields::peak_at_layer,
           memory.layer == nobody ? FieldValue() : scenario.workload.layers[at(memory.layer)].name)
      .add(fields::peak_at_ms, peak_ms(step, memory))
      .add(fields::device_bytes, device > Bytes{} ? FieldValue(device.count) : FieldValue());
  MemoryByKind most = memory.most;
  most[Holds::working] = memory.at_peak[Holds::working];
  for (const auto& [field, size] : parts_of(most)) {
    const bool is_known = (memory.knows_optimizer || field != &fields::optimizer_bytes) &&
                          (memory.knows_activations || field != &fields::activations_bytes);
    record.add(*field, is_known ? FieldValue(size.count) : FieldValue());
  }
  record.add(fields::memory_at_peak, std::move(at_peak));
  return record;
}

std::string memory_text(const Scenario& scenario, const Step& step) {
  return memory_line(scenario, "", memory_of(scenario, step));
}

std::string memory_text(const Scenario& scenario, const std::vector<Result>& results) {
  StepMemory most;
  std::string name;
  for (const Result& each : results) {
    const StepMemory memory = memory_of(scenario, each);
    if (!name.empty() && memory.peak <= most.peak) continue;
    most = memory;
    name = strategy_label(each.step->training);
  }
  return memory_line(scenario, name + ", ", most);
}

std::string memory_warning(const Scenario& scenario, const std::string& name, Bytes peak) {
  const Bytes device = scenario.cluster.device.memory;
  if (device <= Bytes{} || fits(peak, device)) return "";
  const bool within = peak <= device;
  return fmt::format("{}: {} {}: it takes {:.3g} GiB of a rank, and {} has {:.3g} GiB{}",
                     scenario.name, name, within ? "may not fit" : "does not fit", in_gib(peak),
                     shown_name(scenario.cluster.device.name, "device"), in_gib(device),
                     within ? fmt::format(" (fits is judged with {:g} % and {:.2g} GiB to spare)",
                                          100 * memory_margin, in_gib(context_memory))
                            : "");
}

std::vector<std::string> memory_warnings(const Comparison& run) {
  std::vector<std::string> warnings;
  for (std::size_t s = 0; s < run.compared.size(); ++s) {
    const std::string name = strategy_label(run.compared[s].training);
    std::string warning = memory_warning(run.scenario, name, run.memories[s].peak);
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

bool reserves_too_much(const Scenario& scenario, const StepMemory& memory) {
  const Bytes device = scenario.cluster.device.memory;
  return device > Bytes{} && has_pools(scenario) && fits(memory.peak, device) &&
         memory.reserved + context_memory > device;
}

std::vector<std::string> reserved_notes(const Comparison& run) {
  std::vector<std::string> notes;
  const Device& device = run.scenario.cluster.device;
  for (std::size_t s = 0; s < run.compared.size(); ++s)
    if (const StepMemory& memory = run.memories[s]; reserves_too_much(run.scenario, memory))
      notes.push_back(fmt::format(
          "{}: {} fits, but PyTorch's allocator would reserve {:.3g} GiB, and {} has {:.3g}: {}",
          run.scenario.name, strategy_label(run.compared[s].training), in_gib(memory.reserved),
          shown_name(device.name, "device"), in_gib(device.memory), full_pools));
  return notes;
}

}  // namespace ddpsim
