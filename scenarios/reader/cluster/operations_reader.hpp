#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/kernel/operation_table.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

template <typename T>
class Map;

/// A file of measured operations (format: ddpsim.operations/1), written by `python -m
/// ddpsim.measure operations` or the catalogue's. docs/scenario.md tells each key.
struct OperationsFile {
  std::string source;
  std::string device, torch, driver, date;  ///< for people
  double seconds = 0;                       ///< that measuring took
  std::vector<MeasuredOperation> rows;
};

/// The keys of such a file.
const Map<OperationsFile>& operations_map();

/// Throws InputError.
OperationsFile read_operations(const Yaml& given);

/// The device that was measured for the table that `given` names, as its driver calls it. Reads the
/// whole file. Throws InputError.
std::string device_of_operations(const Yaml& given);

/// The table that `given` names: an entry of the catalogue, which is read when the first kernel is
/// looked for, or a path, which is read here. Throws InputError.
std::shared_ptr<const OperationTable> measured_operations(const Yaml& given);

}  // namespace ddpsim
