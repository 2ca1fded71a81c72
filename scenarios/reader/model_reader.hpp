#pragma once

#include <string>
#include <vector>

#include "model/workload/architecture.hpp"
#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/format.hpp"

namespace ddpsim {

/// A model description: a network as a few numbers.
struct ModelDescription {
  Architecture architecture;
  std::string source;
};

/// The keys of a model description.
const MapDescription& model_keys();

/// Reads a description and those it is based on, as entry_with_bases gives them. Throws InputError.
ModelDescription read_model(const std::vector<Entry>& entries);

}  // namespace ddpsim
