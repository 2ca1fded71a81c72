#pragma once

#include <string>

#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

template <typename T>
class Map;

/// The host of a rank: what PyTorch's calls cost its processor.
struct Host {
  std::string name, source;
  double factor = 1;  ///< over the reference host, which times of descriptions are of
};

/// The keys of a host.
const Map<Host>& host_map();

/// A host by its catalogue name, from a file, or written out. Throws InputError.
Host read_host(const Yaml& given);

}  // namespace ddpsim
