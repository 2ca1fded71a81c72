#include "scenarios/reader/explain/catalogue_list.hpp"

#include <string_view>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/cluster/operations_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/workload/workload_reader.hpp"

namespace ddpsim {

namespace {

/// What `read` makes of every entry of a kind. One that cannot be read is an error, or is told in
/// `left_out`, if that is not null.
template <typename Read>
auto all_of(std::string_view kind, std::vector<std::string>* left_out, Read read) {
  std::vector<decltype(read(std::string()))> all;
  for (const std::string& name : catalogue_names(kind)) try {
      all.push_back(read(name));
    } catch (const InputError& problem) {
      if (left_out == nullptr) throw;
      left_out->emplace_back(problem.what());
    }
  if (left_out != nullptr)
    for (const std::string& file : misnamed_files(kind))
      left_out->push_back(file + misnamed_problem);
  return all;
}

/// As `ddpsim import nccl-log` writes clusters, whose log names no GPU.
bool names_no_device(const std::string& cluster) {
  for (const Entry& layer : entry_with_bases(Yaml::of_text(cluster), cluster_entries, "system"))
    if (YamlMap(layer.yaml).has("device") || YamlMap(layer.yaml).has("calibration")) return false;
  return true;
}

}  // namespace

std::vector<ModelSummary> list_models(std::vector<std::string>* left_out) {
  return all_of(model_entries, left_out, [](const std::string& name) {
    const Workload workload = read_catalogue_model(name);
    return ModelSummary{name, workload.source, workload.parameters.size(), workload.elements(),
                        workload.gradient_size()};
  });
}

std::vector<Device> list_devices(std::vector<std::string>* left_out) {
  return all_of(device_entries, left_out,
                [](const std::string& name) { return read_device(Yaml::of_text(name)); });
}

std::vector<Link> list_links(std::vector<std::string>* left_out) {
  return all_of(link_entries, left_out,
                [](const std::string& name) { return read_link(Yaml::of_text(name)); });
}

std::vector<ReadyCluster> list_clusters(std::vector<std::string>* left_out) {
  return all_of(cluster_entries, left_out, [](const std::string& name) {
    try {
      return read_ready_cluster(name);
    } catch (const InputError& problem) {
      if (!names_no_device(name)) throw;
      throw InputError(fmt::format("{}: add the key, or give --device NAME beside --cluster {}",
                                   problem.what(), name));
    }
  });
}

std::vector<Host> list_hosts(std::vector<std::string>* left_out) {
  return all_of(host_entries, left_out,
                [](const std::string& name) { return read_host(Yaml::of_text(name)); });
}

std::vector<OperationsSummary> list_operations(std::vector<std::string>* left_out) {
  return all_of(operation_entries, left_out, [](const std::string& name) {
    const auto path = find_entry_file(Yaml::of_text(name), operation_entries).path;
    const OperationsFile file = read_operations(Yaml::load(path));
    return OperationsSummary{name, file.device, file.source, file.rows.size()};
  });
}

}  // namespace ddpsim
