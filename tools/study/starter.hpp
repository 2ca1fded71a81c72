#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "model/parallel/strategy.hpp"

namespace ddpsim {

/// What a first scenario is about.
struct Starter {
  std::string model = "gpt2";  ///< a name of the catalogue, or the path of a file from here
  std::string cluster;         ///< a ready cluster's name; "": `device` and `links` say all
  std::string device;
  std::array<std::string, 2> links;  ///< [inside a node, between nodes]; "": there is none
  int nodes = 1;
  int ranks_per_node = 1;                  ///< of `device`; a ready cluster has its own
  Strategy strategy = Strategy::bucketed;  ///< this, or one that shards
  int batch = 0;  ///< samples of each rank; 0: as many as fit, up to 32 pictures or 8 texts
};

/// A scenario that somebody starts from: every key they are likely to change, with what it means.
struct StarterScenario {
  std::string text;           ///< YAML; it has been read, and runs
  std::string summary;        ///< "gpt2: 4 nodes of 8 ranks, 8 samples each"
  bool fits = true;           ///< a step of the starter's strategy, in the memory of a device
  bool fits_sharded = false;  ///< that of fsdp, where the starter's does not
};

/// Throws InputError for what is not in the catalogue, for files that cannot be read, and for a
/// scenario that could not be read from `place`, where it is going to be.
StarterScenario starter_scenario(const Starter& starter, const std::filesystem::path& place);

}  // namespace ddpsim
