// Every kind of file there is.

#include <algorithm>

#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/cluster/host_reader.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/cluster/operations_reader.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/workload/description_reader.hpp"
#include "scenarios/reader/workload/model_reader.hpp"
#include "scenarios/reader/workload/profile_reader.hpp"

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
      {"cluster", "a ready cluster of the catalogue", &cluster_keys, true},
      {"device", "a device of the catalogue",
       []() -> const MapDescription& { return device_map().description(); }},
      {"host", "a host of the catalogue",
       []() -> const MapDescription& { return host_map().description(); }},
      {"operations", "a table of measured operations (`format: ddpsim.operations/1`)",
       []() -> const MapDescription& { return operations_map().description(); }},
      {"model", "a model description of the catalogue", &model_keys}};
  return all;
}

const Format& format_named(std::string_view name) {
  return *std::ranges::find(all_formats(), name, &Format::name);
}

}  // namespace ddpsim
