#pragma once

#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/cluster/host_reader.hpp"

namespace ddpsim {

struct ModelSummary {
  std::string name, source;
  std::size_t tensors = 0;
  std::int64_t elements = 0;
  Bytes gradients;
};

struct OperationsSummary {
  std::string name, device, source;
  std::size_t operations = 0;
};

/// Everything the catalogue holds, read and checked. Throw InputError for an entry that cannot be
/// read; where `left_out` is not null, the entry is left out and its error is added there.
std::vector<ModelSummary> list_models(std::vector<std::string>* left_out = nullptr);
std::vector<Device> list_devices(std::vector<std::string>* left_out = nullptr);
std::vector<Link> list_links(std::vector<std::string>* left_out = nullptr);
std::vector<ReadyCluster> list_clusters(std::vector<std::string>* left_out = nullptr);
std::vector<Host> list_hosts(std::vector<std::string>* left_out = nullptr);
std::vector<OperationsSummary> list_operations(std::vector<std::string>* left_out = nullptr);

}  // namespace ddpsim
