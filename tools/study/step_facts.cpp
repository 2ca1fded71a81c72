#include "tools/study/step_facts.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "model/cluster/deciding_link.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

/// What the reader calls an entry that a scenario writes out instead of naming it.
bool is_unnamed(const std::string& name) {
  return name.empty() || name == "inline";
}

Fact device_fact(const Device& device) {
  std::string key = fmt::format("{} {} {}", device.name, device.memory_bandwidth.bytes_per_second,
                                device.memory_efficiency);
  for (const DType type : all_dtypes)
    key += fmt::format(" {} {}", device.peak_of(type).flops_per_second, device.efficiency_of(type));
  return {"device", is_unnamed(device.name) ? "of the scenario" : device.name, std::move(key)};
}

Fact model_fact(const Workload& workload) {
  const std::int64_t parameters = workload.elements();
  const std::string text =
      is_unnamed(workload.name)
          ? fmt::format("of {:.1f} M parameters", static_cast<double>(parameters) / 1e6)
          : workload.name;
  return {"model", text, fmt::format("{} {}", workload.name, parameters)};
}

Fact plain_fact(std::string what, const std::string& value) {
  return {std::move(what), value, value};
}

Fact number_fact(std::string what, int number) {
  return plain_fact(std::move(what), number > 0 ? fmt::format("{}", number) : "");
}

Fact dtype_fact(const Workload& workload) {
  std::set<std::string> types;
  for (const Parameter& parameter : workload.parameters) types.emplace(name_of(parameter.dtype));
  return plain_fact("dtype", enumerated({types.begin(), types.end()}));
}

/// The work of forward and backward, which tells what else of a model was set, such as the side of
/// its pictures.
Fact work_fact(const Workload& workload) {
  double flops = 0, bytes = 0;
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass) {
        if (kernel.gemm) flops += kernel.gemm->flops();
        bytes += static_cast<double>(kernel.traffic.count);
      }
  const std::string text =
      fmt::format("{:.4g} TFLOP and {:.4g} GB a step", flops / 1e12, bytes / 1e9);
  return {"kernels of", text, fmt::format("{} {}", flops, bytes)};
}

/// What the computation of a step depends on, but for the work itself.
std::vector<Fact> compute_facts(const Scenario& scenario) {
  const std::optional<DType> compute = main_format(scenario.workload);
  return {device_fact(scenario.cluster.device),
          model_fact(scenario.workload),
          plain_fact("compute", compute ? std::string(name_of(*compute)) : ""),
          dtype_fact(scenario.workload),
          number_fact("batch", scenario.batch),
          number_fact("sequence", scenario.sequence),
          plain_fact("optimizer", std::string(name_of(scenario.optimizer)))};
}

/// How collectives run, where the scenario says so.
std::string key_of(const Cluster& cluster) {
  const auto number = [](const auto& value) { return value ? static_cast<int>(*value) : -1; };
  return fmt::format("{} {} {} {} {}", static_cast<int>(cluster.collectives),
                     number(cluster.forced.algorithm), number(cluster.forced.protocol),
                     number(cluster.forced.channels), static_cast<int>(cluster.forced.cta_policy));
}

std::vector<Fact> communication_facts(const CalibratedCluster& cluster) {
  const int nodes = cluster.nodes;
  std::string ranks = fmt::format("{}", cluster.ranks());
  if (nodes > 1) ranks += fmt::format(" on {} nodes", nodes);
  const Link& link = deciding_link(cluster);
  const std::string name = is_unnamed(link.name) ? "of the scenario" : link.name;
  return {{"ranks", ranks, fmt::format("{} {}", nodes, to_string(cluster.ranks_per_node))},
          {"link", cluster.ranks() > 1 ? name : "",
           fmt::format("{} {} {} {} {}", link.name, link.bandwidth.bytes_per_second,
                       link.latency.count(), link.carries, link.nics)},
          {"collectives", "of the file", key_of(cluster)}};
}

bool differ(const Fact& measured, const Fact& here) {
  return !measured.text.empty() && !here.text.empty() && measured.key != here.key;
}

}  // namespace

StepFacts step_facts(const Scenario& scenario) {
  return {compute_facts(scenario), work_fact(scenario.workload),
          communication_facts(scenario.cluster), scenario.cluster.ranks() > 1};
}

std::vector<DifferentFact> differences(const StepFacts& measured, const StepFacts& here,
                                       bool with_communication) {
  std::vector<DifferentFact> found;
  const auto compare = [&](const std::vector<Fact>& were, const std::vector<Fact>& are) {
    for (std::size_t i = 0; i < are.size(); ++i)
      if (differ(were[i], are[i])) found.push_back({were[i], are[i]});
  };
  compare(measured.compute, here.compute);
  if (found.empty()) compare({measured.work}, {here.work});
  if (with_communication) compare(measured.communication, here.communication);
  return found;
}

}  // namespace ddpsim
