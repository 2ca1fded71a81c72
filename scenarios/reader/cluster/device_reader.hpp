#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/cluster/cluster.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

template <typename T>
class Map;

/// The keys of a device.
const Map<Device>& device_map();

/// A device by its catalogue name, from a file, or written out. Throws InputError.
Device read_device(const Yaml& given);

/// Does a driver call a device of this name so ("NVIDIA A100-SXM4-80GB" for a100-40)? Variants of a
/// model are alike.
bool is_called(std::string_view device, std::string_view by_driver);

/// A table of operations that were measured on another device of the catalogue.
struct ForeignOperations {
  std::string table;        ///< as it is named
  std::string device;       ///< that was measured, as its driver calls it
  std::string scaled_from;  ///< device of the catalogue that has operations of its own; "": none
};
/// The table that the device, as read_device takes it, takes for its own, where it is of another
/// device of the catalogue than that which it is based on; none: there is none, or nobody can tell.
/// Throws InputError.
std::optional<ForeignOperations> operations_of_another(const Yaml& given);

/// Is this a device of the catalogue that cannot have NVLink?
bool lacks_nvlink(const std::string& name);

/// Does the device, as read_device takes it, or one that it is based on, say so? Throws InputError.
bool lacks_nvlink(const Yaml& given);

/// Is this a device of the catalogue whose NVLink is a bridge between two cards?
bool has_nvlink_bridge(const std::string& name);

/// Does the device, as read_device takes it, or one that it is based on, say so? Throws InputError.
bool has_nvlink_bridge(const Yaml& given);

}  // namespace ddpsim
