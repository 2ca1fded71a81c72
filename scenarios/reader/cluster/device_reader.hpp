#pragma once

#include <string>

#include "model/cluster/cluster.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

template <typename T>
class Map;

/// The keys of a device.
const Map<Device>& device_map();

/// A device by its catalogue name, from a file, or written out. Throws InputError.
Device read_device(const Yaml& given);

/// Is this a device of the catalogue that cannot have NVLink?
bool lacks_nvlink(const std::string& name);

/// Does the device, as read_device takes it, or one that it is based on, say so? Throws InputError.
bool lacks_nvlink(const Yaml& given);

/// Is this a GPU of the catalogue, or one with changes ("mi300x (changed)")?
bool is_known_gpu(std::string name);

/// Is this a device of the catalogue whose NVLink is a bridge between two cards?
bool has_nvlink_bridge(const std::string& name);

/// Does the device, as read_device takes it, or one that it is based on, say so? Throws InputError.
bool has_nvlink_bridge(const Yaml& given);

}  // namespace ddpsim
