#include "scenarios/reader/explain/catalogue_list.hpp"

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/cluster/operations_reader.hpp"
#include "scenarios/reader/workload/workload_reader.hpp"

namespace ddpsim {

std::vector<ModelSummary> list_models() {
  std::vector<ModelSummary> models;
  for (const std::string& name : catalogue_names(model_entries)) {
    const Workload workload = read_catalogue_model(name);
    models.push_back({name, workload.source, workload.parameters.size(), workload.elements(),
                      workload.gradient_size()});
  }
  return models;
}

std::vector<Device> list_devices() {
  std::vector<Device> devices;
  for (const std::string& name : catalogue_names(device_entries))
    devices.push_back(read_device(Yaml::of_text(name)));
  return devices;
}

std::vector<Link> list_links() {
  std::vector<Link> links;
  for (const std::string& name : catalogue_names(link_entries))
    links.push_back(read_link(Yaml::of_text(name)));
  return links;
}

std::vector<ReadyCluster> list_clusters() {
  std::vector<ReadyCluster> clusters;
  for (const std::string& name : catalogue_names(cluster_entries))
    clusters.push_back(read_ready_cluster(name));
  return clusters;
}

std::vector<Host> list_hosts() {
  std::vector<Host> hosts;
  for (const std::string& name : catalogue_names(host_entries))
    hosts.push_back(read_host(Yaml::of_text(name)));
  return hosts;
}

std::vector<OperationsSummary> list_operations() {
  std::vector<OperationsSummary> tables;
  for (const std::string& name : catalogue_names(operation_entries)) {
    const auto path = find_entry_file(Yaml::of_text(name), operation_entries).path;
    const OperationsFile file = read_operations(Yaml::load(path));
    tables.push_back({name, file.device, file.source, file.rows.size()});
  }
  return tables;
}

}  // namespace ddpsim
