// Every kind of file there is.

#include "scenarios/reader/calibration_reader.hpp"
#include "scenarios/reader/cluster_reader.hpp"
#include "scenarios/reader/description_reader.hpp"
#include "scenarios/reader/device_reader.hpp"
#include "scenarios/reader/format.hpp"
#include "scenarios/reader/host_reader.hpp"
#include "scenarios/reader/link_reader.hpp"
#include "scenarios/reader/map.hpp"
#include "scenarios/reader/model_reader.hpp"
#include "scenarios/reader/operations_reader.hpp"
#include "scenarios/reader/profile_reader.hpp"
#include "scenarios/reader/scenario_reader.hpp"

namespace ddpsim {

const std::vector<Format>& all_formats() {
  static const std::vector<Format> all{
      {"scenario", "a scenario", &scenario_keys},
      {"workload", "a workload profile (`format: ddpsim.workload/1`)",
       []() -> const MapDescription& { return workload_profile_map().description(); }},
      {"description", "a workload description (`format: ddpsim.workload/2`)",
       []() -> const MapDescription& { return workload_description_map().description(); }},
      {"link", "a link: a link profile (`format: ddpsim.link/1`) or an entry of the catalogue",
       []() -> const MapDescription& { return link_map().description(); }},
      {"calibration", "a calibration (`format: ddpsim.calibration/1`)",
       []() -> const MapDescription& { return calibration_map().description(); }},
      {"cluster", "a ready cluster of the catalogue", &cluster_keys},
      {"device", "a device of the catalogue",
       []() -> const MapDescription& { return device_map().description(); }},
      {"host", "a host of the catalogue",
       []() -> const MapDescription& { return host_map().description(); }},
      {"operations", "a table of measured operations (`format: ddpsim.operations/1`)",
       []() -> const MapDescription& { return operations_map().description(); }},
      {"model", "a model description of the catalogue", &model_keys}};
  return all;
}

}  // namespace ddpsim
